// Users: hashed passwords and what they cost, rights by table, bounds and quotas, drop-ins, and what is shown of it all.
import { execFile, execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, bin, canary, check, equal, run, test, until } from './lib.mjs'

const dir = fs.mkdtempSync('/tmp/sluice-users-')
const hash = (secret, ...args) => execFileSync(path.join(bin, 'sluice'), ['user', 'hash', ...args], { input: `${secret}\n`, encoding: 'utf8' }).trim()
const put = (name, text) => {
  fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true })
  fs.writeFileSync(path.join(dir, name), text)
}
const slow = hash(`${canary}-slow`, '--password')
put('sluice.yaml', `users:
  root: {password: "${hash(`${canary}-root`)}", grants: [insert, read, admin]}
`)
put('users.d/people.yaml', `users:
  ann: {password: "${slow}", grants: [insert, read, admin], profile: bounded}
  eve: {password_file: eve.hash, grants: [insert, read], tables: ["one.*"]}
  few: {password: "${hash(`${canary}-few`)}", grants: [insert], inserts_per_minute: 3}
  own: {password: "${hash(`${canary}-own`)}", grants: [read, admin], tables: ["one.u"]}
  late: {password: "${hash(`${canary}-late`)}", grants: [read]}
  thin: {password: "${hash(`${canary}-thin`)}", grants: [insert], bytes_per_minute: 100B}
profiles:
  bounded:
    settings: [max_execution_time=10, sluice_ack=stored]
    min: [max_execution_time=5]
    max: [max_execution_time=20]
    readonly: [sluice_ack]
`)
put('conf.d/10-limits.yaml', 'http.body_max: 2MiB\n')
put('secrets/eve.hash', hash(`${canary}-eve`))

const file = path.join(dir, 'sluice.yaml')
const env = { CREDENTIALS_DIRECTORY: path.join(dir, 'secrets') }
const d = await Daemon.start({ args: ['--config', file], env })
const as = (name, body, target = '/', secret = `${canary}-${name}`) =>
  d.request({ path: target, body, headers: { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': secret } })
const code = async (promise) => {
  const r = await promise
  return [r.status, Number(r.headers['x-clickhouse-exception-code'] ?? 0)]
}
const ann = (body, target) => as('ann', body, target, `${canary}-slow`)
const insert = (table) => `/?query=${encodeURIComponent(`INSERT INTO ${table} FORMAT TSV`)}`
const command = (name, target) => d.request({ port: d.adminPort, path: target, method: 'POST', headers: { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': `${canary}-${name}` } })
const sluice = (args, more = {}) => new Promise((resolve) => execFile(path.join(bin, 'sluice'), args,
  { env: { ...process.env, ...env, SLUICE_URL: d.url, SLUICE_ADMIN_URL: d.adminUrl, ...more } },
  (error, out, err) => resolve({ status: error ? error.code : 0, out, err })))

await test(d, {
  'who is who, wherever they are configured': async () => {
    for (const statement of ['CREATE DATABASE one', 'CREATE DATABASE two', 'CREATE TABLE one.t (a UInt32) ENGINE = MergeTree ORDER BY a', 'CREATE TABLE two.t (a UInt32) ENGINE = MergeTree ORDER BY a'])
      equal((await as('root', statement)).status, 200, statement)
    equal((await ann('SELECT currentUser()')).text, 'ann\n', 'a slow password')
    equal((await as('eve', 'SELECT currentUser()')).text, 'eve\n', 'one from a file')
    equal(await code(as('eve', 'SELECT 1', '/', 'wrong')), [403, 516], 'a wrong one')
    equal(await code(as('ann', 'SELECT 1', '/', `${canary}-slower`)), [403, 516], 'a wrong slow one')
    equal(await code(d.request({ path: `/?user=ann&password=${canary}-slow%00more`, body: 'SELECT 1' })), [403, 516], 'one that goes on behind a zero byte')
  },
  'whose insert was refused stands in the log of inserts': async () => {
    const refused = await as('eve', 'x\n', insert('one.t'))
    equal(refused.status, 400, 'a letter is no number')
    const said = await as('root', `SELECT user, code FROM system.asynchronous_insert_log WHERE query_id = '${refused.headers['x-clickhouse-query-id']}' FORMAT TSV`)
    equal(said.text, 'eve\t27\n', 'the user and the code')
  },
  'a slow password with a body before and after it is tried': async () => {
    equal((await ann('1\n', insert('one.t'))).headers['x-sluice-ack'], 'stored', 'known by now')
    const large = '7\n'.repeat(200000)
    equal((await command('root', '/-/reload')).status, 200, 'a reload forgets it')
    equal((await ann(large, insert('one.t'))).status, 200, 'a large body, and a password to try')
    equal((await as('ann', large, insert('one.t'), 'no')).status, 403, 'and a wrong one')
    equal((await d.request({ path: insert('one.t'), headers: { 'Transfer-Encoding': 'chunked', 'X-ClickHouse-User': 'ann', 'X-ClickHouse-Key': 'no' }, body: large })).status, 403, 'chunked')
    await command('root', '/-/reload')
    const nothing = await d.request({ path: '/?query=SELECT+1', body: '', headers: { 'Content-Length': 0, 'X-ClickHouse-User': 'ann', 'X-ClickHouse-Key': `${canary}-slow` } })
    equal([nothing.status, nothing.text], [200, '1\n'], 'no body at all')
    await command('root', '/-/reload')
    equal((await d.request({ method: 'GET', path: '/?query=SELECT+2', headers: { Authorization: `Basic ${Buffer.from(`ann:${canary}-slow`).toString('base64')}` } })).text, '2\n', 'GET')
  },
  'many at once with passwords to try are answered, one way or the other': async () => {
    const results = await Promise.all(Array.from({ length: 60 }, (_, i) => code(as(`nobody${i}`, 'SELECT 1'))))
    const refused = results.filter(([status]) => status === 403).length
    const busy = results.filter(([status, number]) => status === 503 && number === 202).length
    equal(refused + busy, 60, `answers: ${JSON.stringify(results)}`)
    check(refused >= 16, `${refused} were tried`)
  },
  'rights hold for tables': async () => {
    equal((await as('eve', '1\n', insert('one.t'))).status, 200, 'insert')
    equal(await code(as('eve', '1\n', insert('two.t'))), [500, 497], 'insert elsewhere')
    equal((await as('eve', 'SELECT count() > 0 FROM one.t')).text, '1\n', 'read')
    for (const statement of ['SELECT * FROM two.t', 'SELECT 1 FROM one.t WHERE a IN (SELECT a FROM two.t)', 'DESCRIBE two.t', 'SHOW CREATE TABLE two.t', 'SELECT * FROM system.dead_letter_queue', 'SELECT * FROM system.users', 'WITH x AS (SELECT * FROM two.t) SELECT * FROM x', 'INSERT INTO one.t SELECT * FROM two.t', 'EXPLAIN SELECT * FROM two.t', 'SELECT * FROM one.t UNION ALL SELECT * FROM two.t'])
      equal(await code(as('eve', statement)), [500, 497], statement)
    equal(await code(as('few', 'SELECT 1 FROM one.t')), [500, 497], 'without read')
    for (const statement of ['CREATE TABLE one.u (a UInt32) ENGINE = MergeTree ORDER BY a', 'ALTER TABLE one.u ADD COLUMN b UInt8', 'OPTIMIZE TABLE one.u', 'TRUNCATE TABLE one.u'])
      equal((await as('own', statement)).status, 200, `a table of his own: ${statement}`)
    for (const statement of ['CREATE TABLE one.v (a UInt32) ENGINE = MergeTree ORDER BY a', 'CREATE TABLE one.u2 AS one.t', 'DROP TABLE one.t', 'DROP TABLE one.u, one.t', 'RENAME TABLE one.u TO one.t2', 'TRUNCATE TABLE two.t', 'DROP DATABASE one', 'CREATE DATABASE three', 'SYSTEM FLUSH ASYNC INSERT QUEUE', "BACKUP ALL TO File('x')", 'KILL QUERY WHERE 1', 'SYSTEM DROP DEAD LETTERS'])
      equal(await code(as('own', statement)), [500, 497], `not his: ${statement}`)
    equal((await as('own', 'DROP TABLE u', '/?database=one')).status, 200, 'the current database counts')
    equal(await code(as('eve', 'DROP TABLE one.t')), [500, 497], 'without admin')
  },
  'what a profile says is there, and is a bound': async () => {
    const setting = async (name, more = '') => (await ann(`SELECT getSetting('${name}')`, `/?${more}`)).text
    equal(await setting('max_execution_time'), '10\n', 'the default')
    equal(await setting('max_execution_time', 'max_execution_time=20'), '20\n', 'within')
    for (const more of ['max_execution_time=21', 'max_execution_time=4', 'max_execution_time=0', 'sluice_ack=buffered'])
      equal(await code(ann('SELECT 1', `/?${more}`)), [500, 452], more)
    equal((await ann('SELECT 1', '/?sluice_ack=stored')).status, 200, 'the same is no change')
    equal(await code(ann('SELECT 1 SETTINGS max_execution_time = 30')), [500, 452], 'of a clause')
    equal(await code(ann('INSERT INTO one.t SETTINGS max_execution_time = 30 FORMAT TSV 1\n')), [500, 452], 'of an INSERT')
    equal(await code(ann('SET max_execution_time = 30', '/?session_id=s')), [500, 452], 'of a session')
    equal((await as('root', 'SELECT 1', '/?max_execution_time=1000')).status, 200, 'nobody else is bound')
  },
  'quotas count inserts and bytes, and say when to come again': async () => {
    for (let i = 0; i < 3; i++) equal((await as('few', `${i}\n`, insert('one.t'))).status, 200, `insert ${i}`)
    const over = await as('few', '9\n', insert('one.t'))
    equal([over.status, over.headers['x-clickhouse-exception-code']], [429, '201'], over.text)
    const after = Number(over.headers['retry-after'])
    check(after >= 1 && after <= 20, `Retry-After: ${after}`)
    equal((await as('thin', '1\n'.repeat(50), insert('one.t'))).status, 200, '100 bytes')
    equal(await code(as('thin', '1\n', insert('one.t'))), [429, 201], 'a byte more')
    equal((await as('root', '1\n', insert('one.t'))).status, 200, 'nobody else feels it')
    check(/sluice_http_throttled_total\{reason="quota"\} 2\n/.test((await d.admin('/metrics')).text), 'they are counted')
  },
  'commands of the admin port are for admins': async () => {
    equal((await d.admin('/-/flush', 'POST')).status, 401, 'nobody')
    equal((await command('eve', '/-/flush')).status, 500, 'no admin')
    equal((await command('root', '/-/flush')).text, 'flushed\n', 'an admin')
    for (const open of ['/metrics', '/-/healthy', '/-/ready']) equal((await d.admin(open)).status, 200, open)
  },
  'config show: values, where from, and no secret': async () => {
    const shown = await sluice(['config', 'show', '-o', 'json'], { SLUICE_USER: 'root', SLUICE_PASSWORD: `${canary}-root` })
    const { settings, users } = JSON.parse(shown.out)
    const find = (name) => settings.find((s) => s.name === name)
    equal([find('http.body_max').value, find('http.body_max').source], ['2MiB', `${dir}/conf.d/10-limits.yaml:1`], 'a drop-in')
    equal(find('data_dir').source, 'flag', 'a flag')
    equal(users.map((u) => u.name).sort(), ['ann', 'eve', 'few', 'late', 'own', 'root', 'thin'], 'users')
    const offline = await sluice(['config', 'show', '--config', file])
    check(/^http.body_max: 2MiB {2}# .*conf.d\/10-limits.yaml:1$/m.test(offline.out), offline.out)
    check(/^ {2}ann:\n {4}password: "crypt"\n/m.test(offline.out), offline.out)
    for (const { out } of [shown, offline]) check(!out.includes('$y$') && !out.includes('sha256:') && !out.includes(canary), 'no hash')
  },
  '--check-config looks at files and directories': async () => {
    const checked = (args) => run(path.join(bin, 'sluiced'), ['--check-config', ...args], { env: { ...process.env, ...env } })
    equal((await checked(['--config', file, '--data-dir', d.data])).code, 0, 'beside a running daemon')
    const other = path.join(dir, 'other')
    fs.mkdirSync(path.join(other, 'tables'), { recursive: true })
    equal((await checked(['--data-dir', other])).code, 3, 'tables without FORMAT')
    fs.rmSync(path.join(other, 'tables'), { recursive: true })
    fs.writeFileSync(path.join(other, 'FORMAT'), 'product=sluice\nmajor=99\n')
    equal((await checked(['--data-dir', other])).code, 3, 'of a newer version')
    fs.rmSync(path.join(other, 'FORMAT'))
    fs.mkdirSync(path.join(other, 'spool'))
    fs.writeFileSync(path.join(other, 'spool', `${'0'.repeat(15)}1-${'0'.repeat(15)}1.spool`), 'x'.repeat(100))
    const spool = await checked(['--data-dir', other])
    check(spool.code === 0 && /\.spool: this is no head of a segment/.test(spool.stderr), `a damaged segment: ${spool.code} ${spool.stderr}`)
    equal(fs.readdirSync(other), ['spool'], 'nothing was written')
    for (const bad of [['--listen', 'nowhere'], ['--set', 'unix.mode=0999'], ['--set', 'unix.admin_mode=rw'], ['--set', 'unix.admin_listen=relative'], ['--set', 'unix.group=nobody-has-this'], ['--data-dir', file]])
      equal((await checked(bad)).code, 78, bad.join(' '))
  },
  'the daemon reads no files but those it needs': async () => {
    await d.logged('sandbox: landlock=')
    const [, level] = /sandbox: landlock=(\d+)/.exec(d.log)
    put('users.d/spy.yaml', 'users: {spy: {password_file: /etc/passwd}}\n')
    const refused = await command('root', '/-/reload')
    equal(refused.status, 400, refused.text)
    check((level === '0' ? /is neither sha256/ : /Permission denied[^]*needs a restart/).test(refused.text), refused.text)
    put('users.d/spy.yaml', '')
    put('secrets/eve.hash.new', hash(`${canary}-new`))
    fs.renameSync(path.join(dir, 'secrets/eve.hash.new'), path.join(dir, 'secrets/eve.hash'))
    equal((await command('root', '/-/reload')).status, 200, 'a secret that was put in the place of another')
    equal((await as('eve', 'SELECT 1', '/', `${canary}-new`)).status, 200, 'is the one that counts')
    const open = await Daemon.start({ args: ['--set', 'sandbox=false'] })
    await open.close()
    check(!open.log.includes('sandbox'), 'it can be turned off')
  },
  'no secret in the log': async () => {
    await as('root', 'SELECT 1', '/', `${canary}-wrong`)
    await d.request({ path: `/?user=root&password=${canary}-wrong`, body: 'SELECT 1' })
    await as('root', 'SELECT')
    await d.logged(/admin statement: user=root.*CREATE TABLE one\.t/g)
    check(!d.log.includes(canary) && !d.log.includes('$y$') && !d.log.includes('sha256:'), 'passwords are not')
  },
  'nor in what is told on request': async () => {
    put('users.d/spy.yaml', `users: {spy: {password: "${canary}-plain", grants: [read]}}\n`)
    const refused = await command('root', '/-/reload')
    equal(refused.status, 400, 'a password in plain text is refused')
    put('users.d/spy.yaml', '')
    equal((await command('root', '/-/reload')).status, 200, 'without it all is well')
    const told = [refused.text]
    for (const table of ['query_log', 'asynchronous_insert_log', 'errors', 'settings', 'users', 'grants', 'processes', 'metrics'])
      told.push((await as('root', `SELECT * FROM system.${table} FORMAT JSONEachRow`)).text)
    told.push((await d.request({ path: `/?user=root&password=${canary}-wrong`, body: 'SELECT 1' })).text, (await d.admin('/metrics')).text)
    for (const verb of [['support-bundle'], ['config', 'show', '--config', file], ['status'], ['-o', 'json', 'doctor', '--config', file]]) {
      const { status, out, err } = await sluice(verb, { SLUICE_USER: 'root', SLUICE_PASSWORD: `${canary}-root` })
      check(out.length > 0 && [0, 1].includes(status), `${verb}: ${status} ${err}`)
      told.push(out, err)
    }
    for (const text of told)
      check(!text.includes(canary) && !text.includes(slow) && !/sha256:[0-9a-f]{8}/.test(text), text.slice(0, 2000))
  },
  'who guesses is not heard any more, who was right lately still is': async () => {
    const failed = async (reason) => Number(new RegExp(`sluice_auth_failures_total\\{reason="${reason}"\\} (\\d+)`).exec((await d.admin('/metrics')).text)[1])
    equal((await as('eve', 'SELECT 1', '/', `${canary}-new`)).status, 200, 'right lately') // a reload forgets who was
    const before = await failed('credentials')
    for (let i = 0; i < 10; i++) equal(await code(as('late', 'SELECT 1', '/', `guess ${i}`)), [403, 516], `guess ${i}`)
    equal(await failed('credentials') - before, 10, 'guesses that were tried')
    equal(await code(as('late', 'SELECT 1')), [403, 516], 'the right one comes too late')
    equal(await failed('budget'), 1, 'it was not tried')
    for (let i = 0; i < 12; i++) equal((await as('eve', 'SELECT 1', '/', `guess ${i}`)).status, 403, `guess ${i} as somebody known`)
    equal((await as('eve', 'SELECT 1', '/?max_threads=7', `${canary}-new`)).status, 200, 'the one who is known')
  },
})
const busy = await Daemon.start({ args: ['--config', file, '--set', 'http.waiters=1', '--set', 'http.threads=1',
  '--set', 'async_insert_busy_timeout_min_ms=3600000', '--set', 'async_insert_busy_timeout_max_ms=3600000'], env })
await test(busy, {
  'what finds no room costs no quota': async () => {
    const headers = (name) => ({ 'X-ClickHouse-User': name, 'X-ClickHouse-Key': `${canary}-${name}` })
    const send = (name, body, target) => busy.request({ path: target, body, headers: headers(name) })
    equal((await send('root', 'CREATE DATABASE one', '/')).status, 200, 'a database')
    equal((await send('root', 'CREATE TABLE one.t (a UInt64) ORDER BY a', '/')).status, 200, 'a table')
    const waits = send('few', '1\n', insert('one.t'))
    await until(async () => / 1\n/.test(/sluice_buffer_inserts.* 1\n/.exec((await busy.admin('/metrics')).text)?.[0] ?? ''), 'the first to wait')
    for (let i = 0; i < 5; i++) {
      const refused = await send('few', '2\n', insert('one.t'))
      equal([refused.status, refused.headers['x-clickhouse-exception-code']], [503, '202'], refused.text)
    }
    equal((await send('root', 'SYSTEM FLUSH ASYNC INSERT QUEUE', '/')).status, 200, 'flush')
    equal((await waits).status, 200, 'the first')
    const sync = `${insert('one.t')}&async_insert=0`
    for (let i = 0; i < 2; i++) equal((await send('few', '3\n', sync)).status, 200, `insert ${i} of the quota's two`)
    const over = await send('few', '4\n', sync)
    equal([over.status, over.headers['x-clickhouse-exception-code']], [429, '201'], over.text)
  },
})
fs.rmSync(dir, { recursive: true })
