// docs/clients: what is to be copied and pasted is run as it stands, with this daemon's port in place of 8124. Languages
// that are not installed here are passed over, saying so; every page has to be in the index and have an example.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Daemon, check, equal, root, test } from '../e2e/lib.mjs'

const dir = path.join(root, 'docs/clients')
const installed = path.resolve(process.env.SLUICE_CLIENTS_DIR ?? path.join(root, 'build/clients'))
const pages = fs.readdirSync(dir).filter((name) => name !== 'README.md')
const blocks = (page, language) => [...fs.readFileSync(path.join(dir, page), 'utf8')
  .matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1])

const d = await Daemon.start()
const here = (text) => {
  check(text.includes('127.0.0.1:8124') || text.includes('port=8124'), 'an example names the address')
  return text.replaceAll('127.0.0.1:8124', `127.0.0.1:${d.port}`).replaceAll('port=8124', `port=${d.port}`)
}
const run = (program, args, options = {}) => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', ...options })
  check(status === 0, `${program}: ${stderr}${stdout}`)
  return stdout
}
const post = (sql) => fetch(d.url, { method: 'POST', body: sql }).then(async (r) => [r.status, await r.text()])
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-pages-'))

await test(d, {
  'every page is in the index and shows something': () => {
    const index = fs.readFileSync(path.join(dir, 'README.md'), 'utf8')
    for (const page of pages) {
      check(index.includes(`(${page})`), `the index names ${page}`)
      check(/^```\w+$/m.test(fs.readFileSync(path.join(dir, page), 'utf8')), `${page} has an example`)
    }
  },
  'curl': () => {
    const outputs = blocks('curl.md', 'sh').map((block) => run('bash', ['-euo', 'pipefail', '-c', here(block)]))
    equal(outputs.at(-1), 'boot\t1\t1\norder\t1\t4711\ntick\t3\t6\n', 'what the last example prints')
  },
  'JavaScript': () => {
    if (!fs.existsSync(path.join(installed, 'node_modules/@clickhouse/client/package.json'))) {
      console.log(`passed over: no @clickhouse/client in ${installed}`)
      return
    }
    fs.symlinkSync(path.join(installed, 'node_modules'), path.join(scratch, 'node_modules'))
    const [example] = blocks('javascript.md', 'js')
    fs.writeFileSync(path.join(scratch, 'example.mjs'), here(example))
    const printed = run(process.execPath, ['example.mjs'], { cwd: scratch })
    check(printed.startsWith('2 stored\n') && printed.includes("host: 'a'"), `what the example prints: ${printed}`)
  },
  'Python': () => {
    if (spawnSync('python3', ['-c', 'import clickhouse_connect']).status !== 0) {
      console.log('passed over: no clickhouse_connect for python3')
      return
    }
    const [example] = blocks('python.md', 'python')
    equal(run('python3', ['-c', here(example)]), '[(2, 3.0)]\n', 'what the example prints')
  },
  'Telegraf': async () => {
    const [table] = blocks('telegraf.md', 'sql')
    equal((await post(table))[0], 200, 'a table')
    const [, target] = /^ {2}url = "(.*)"$/m.exec(here(blocks('telegraf.md', 'toml')[0]))
    const sent = { fields: { usage_idle: 98.5 }, name: 'cpu', tags: { host: 'a' }, timestamp: 1458229140 }
    const r = await fetch(target, { method: 'POST', body: `${JSON.stringify(sent)}\n` })
    equal(r.status, 200, await r.text())
    equal(await post("SELECT name, tags['host'], fields['usage_idle'], toUnixTimestamp(timestamp) FROM telegraf"), [200, 'cpu\ta\t98.5\t1458229140\n'], 'the row')
  },
  'Grafana': async () => {
    const [panel] = blocks('grafana.md', 'sql')
    equal((await post('CREATE TABLE events (ts DateTime, name String, value Float64) ORDER BY ts'))[0], 200, 'a table')
    equal((await post("INSERT INTO events SELECT now(), 'cpu', number FROM numbers(3)"))[0], 200, 'rows')
    const [status, text] = await post(panel)
    equal([status, text.split('\t').slice(1)], [200, ['cpu', '1\n']], 'the panel')
  },
})
fs.rmSync(scratch, { recursive: true })
