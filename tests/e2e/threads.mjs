// F-13: a limit of threads that is too low ends the start with a word of what is missing, and harms nothing.
import fs from 'node:fs'
import path from 'node:path'
import { spawnSync } from 'node:child_process'
import { Daemon, bin, check, equal, run, skip, test } from './lib.mjs'

const nobody = 65534
if (process.getuid() !== 0) skip('only root can become somebody with a limit of his own')
if (spawnSync('prlimit', ['--version']).status !== 0 || spawnSync('setpriv', ['--version']).status !== 0) skip('no prlimit, setpriv')

const d = await Daemon.start()
await test(d, {
  'F-13: no threads: the start ends and says so; nothing is lost, and with threads all is there': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    equal((await d.insert('t', '{"id":1}')).status, 200, 'stored')
    equal((await d.insert('t', '{"id":2}', { sluice_ack: 'spooled', async_insert_busy_timeout_max_ms: 3600000, async_insert_use_adaptive_busy_timeout: 0 })).status, 200, 'spooled')
    await d.kill()
    const program = path.join(d.dir, 'sluiced') // where nobody may run it
    fs.copyFileSync(path.join(bin, 'sluiced'), program)
    fs.chmodSync(program, 0o755)
    equal((await run('chown', ['-R', String(nobody), d.dir])).code, 0, 'chown')
    const refused = await run('setpriv', [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', 'prlimit', '--nproc=2', program,
      '--data-dir', d.data, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'])
    equal(refused.code, 1, refused.stderr)
    check(/no thread: for=\w+ reason=.*ulimit -u/.test(refused.stderr), refused.stderr)
    await d.launch()
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal((await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id)), [1, 2], 'rows')
  },
})
