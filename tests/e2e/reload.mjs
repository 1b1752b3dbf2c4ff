// SIGHUP and POST /-/reload: what can change changes at once and as a whole, the rest waits for a restart, and a bad file
// changes nothing.
import crypto from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Daemon, check, equal, sanitized, test, until } from './lib.mjs'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-e2e-'))
const file = path.join(dir, 'sluice.yaml')
const user = (name, password) => `users:\n  ${name}:\n    password: "sha256:${crypto.createHash('sha256').update(password).digest('hex')}"\n    grants: [insert, read, admin]\n`
fs.writeFileSync(file, `http.body_max: 100B\n${user('ann', 'old')}`)

const d = await Daemon.start({ args: ['--config', file] })
const as = (name, password, body = 'SELECT 1') =>
  d.request({ path: '/', body, headers: { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': password } })
const reload = (name, password) => d.request({ port: d.adminPort, path: '/-/reload', method: 'POST', headers: { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': password } })
const reloaded = () => d.metric('sluice_config_last_reload_successful')

await test(d, {
  'what the file says at the start': async () => {
    equal((await as('ann', 'old')).status, 200, 'user')
    equal((await as('ann', 'old', 'SELECT 1 /*' + 'x'.repeat(200) + '*/')).status, 413, 'a long body')
    equal(await reloaded(), 1, 'metric')
    check(Math.abs(await d.metric('sluice_config_last_reload_success_timestamp_seconds') - Date.now() / 1000) < 600, 'time')
  },
  'SIGHUP takes the new limits and users, and keeps what needs a restart': async () => {
    fs.writeFileSync(file, `http.body_max: 1KiB\nhttp.pool: 64KiB\n${user('bob', 'new')}`)
    d.child.kill('SIGHUP')
    await d.logged('configuration reloaded')
    equal((await as('ann', 'old')).status, 403, 'the old user')
    equal((await as('bob', 'new', 'SELECT 1 /*' + 'x'.repeat(200) + '*/')).status, 200, 'the new user, a long body')
    await d.logged('http.pool')
    equal((await as('bob', 'new', "SELECT value FROM system.settings WHERE name = 'http.pool'")).text, '32KiB\n', 'value in force')
  },
  'a bad file changes nothing, and is told': async () => {
    fs.writeFileSync(file, 'http.body_max: 10B\nno_such_setting: 1\n')
    const refused = await reload('bob', 'new')
    equal(refused.status, 400, refused.text)
    check(refused.text.includes(`${file}:2`), refused.text)
    await d.logged('not reloaded, the old one stays', 2)
    check(!d.log.includes('\\\\x0a'), 'a line of the log for each problem')
    equal(await reloaded(), 0, 'metric')
    equal((await as('bob', 'new', 'SELECT 1 /*' + 'x'.repeat(200) + '*/')).status, 200, 'all as before')
  },
  'POST /-/reload takes the mended one': async () => {
    fs.writeFileSync(file, `http.body_max: 100B\n${user('bob', 'newer')}`)
    const taken = await reload('bob', 'new')
    equal([taken.status, taken.text], [200, 'reloaded\n'], 'answer')
    equal((await as('bob', 'new')).status, 403, 'the old password')
    equal((await as('bob', 'newer')).status, 200, 'the new password')
    equal(await reloaded(), 1, 'metric')
    equal((await d.admin('/-/reload')).status, 405, 'GET of a command')
  },
  'what a configuration held goes with it': async () => {
    if (sanitized) return // freed memory stays in quarantine there
    const many = (round) => {
      fs.writeFileSync(file, `${user('bob', 'newer')}${Array.from({ length: 3000 }, (_, i) => `  u${i}: {settings: ["log_comment=${'x'.repeat(200)}${round}"]}\n`).join('')}`)
      return reload('bob', 'newer')
    }
    const memory = () => d.metric('process_resident_memory_bytes')
    for (let round = 0; round < 5; round++) equal((await many(round)).status, 200, 'reload')
    const before = await memory()
    for (let round = 0; round < 40; round++) equal((await many(round)).status, 200, 'reload')
    const grown = await memory() - before
    check(grown < 20e6, `40 reloads of more than 1 MB each left ${grown} bytes`)
  },
})
fs.rmSync(dir, { recursive: true })
