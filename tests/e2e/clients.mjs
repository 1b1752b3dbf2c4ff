// Recorded client scenarios, replayed against the daemon. Usage: clients.mjs FLOOR FILE   (a number of scenarios that must
// pass; a name under tests/cases/clients, or FOLDER/NAME)
import path from 'node:path'
import { Daemon, check, root, run, test } from './lib.mjs'

const [floor, file] = process.argv.slice(2)
const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=2'] })
await test(d, {
  [file]: async () => {
    const scenarios = path.join(root, 'tests/cases', file.includes('/') ? '' : 'clients', file)
    const { stdout, stderr } = await run('node', [path.join(root, 'tests/oracle/replay.mjs'), '--url', d.url, scenarios])
    const last = /(\d+) passed, (\d+) failed/.exec(stdout)
    check(last, `the tool's last line: ${stdout.slice(-500)} ${stderr.slice(-500)}`)
    console.log(stdout.split('\n').slice(-60).join('\n'))
    console.log(`${file}: ${last[0]} (floor ${floor})`)
    check(Number(last[1]) >= Number(floor), `at least ${floor} pass`)
  },
})
