// The process itself: exit statuses, signals, the port file, health, users.
import { spawn } from 'node:child_process'
import crypto from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { Daemon, bin, check, equal, run, test, until } from './lib.mjs'

const sluiced = (...args) => run(path.join(bin, 'sluiced'), args)
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-e2e-'))

const d = await Daemon.start()
await test(d, {
  'a wrong command line is 2, a wrong configuration 78, help and version 0': async () => {
    equal((await sluiced('--no-such-flag')).code, 2, 'unknown flag')
    const file = path.join(scratch, 'bad.yaml')
    fs.writeFileSync(file, 'listen: 127.0.0.1:0\nno_such_setting: 1\n')
    const bad = await sluiced('--config', file, '--check-config')
    equal(bad.code, 78, 'bad configuration')
    check(bad.stderr.includes(`${file}:2`), `file and line: ${bad.stderr}`)
    fs.writeFileSync(file, 'listen: 127.0.0.1:0\n')
    equal((await sluiced('--config', file, '--check-config')).code, 0, 'good configuration')
    for (const flag of ['--help', '--version']) {
      const { code, stdout } = await sluiced(flag)
      equal(code, 0, flag)
      check(stdout.length > 0, `${flag} prints`)
    }
  },
  'a locked data directory is 4, a strange one 3, an address in use 1': async () => {
    const args = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']
    equal((await sluiced('--data-dir', d.data, ...args)).code, 4, 'locked')
    const strange = path.join(scratch, 'strange')
    fs.mkdirSync(strange)
    fs.writeFileSync(path.join(strange, 'FORMAT'), 'something else\n')
    equal((await sluiced('--data-dir', strange, ...args)).code, 3, 'of another product')
    equal((await sluiced('--data-dir', path.join(scratch, 'x'), '--listen', `127.0.0.1:${d.port}`, '--admin-listen', '127.0.0.1:0')).code, 1,
      'address in use')
  },
  'health, readiness and start are told on the admin port': async () => {
    for (const [target, text] of [['/-/healthy', 'ok\n'], ['/livez', 'ok\n'], ['/-/ready', 'ready\n'], ['/readyz', 'ready\n'], ['/startupz', 'serving\n']]) {
      const a = await d.admin(target)
      equal([a.status, a.text], [200, text], target)
    }
    equal((await d.admin('/-/flush')).status, 405, 'GET of a command')
    equal((await d.admin('/-/flush', 'POST')).status, 200, 'flush')
    equal((await d.admin('/?query=SELECT+1')).status, 404, 'statements are not for the admin port')
  },
  'SIGUSR2 flushes, SIGPIPE changes nothing': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    await d.insert('t', '{"id":1}', { wait_for_async_insert: 0, async_insert_busy_timeout_max_ms: 600000, async_insert_use_adaptive_busy_timeout: 0 })
    equal(Number(await d.sql('SELECT count() FROM t')), 0, 'rows before')
    for (const signal of ['SIGPIPE', 'SIGUSR2']) d.child.kill(signal)
    await until(async () => Number(await d.sql('SELECT count() FROM t')) === 1, 'the flush')
  },
  'POST /-/drain ends the daemon as SIGTERM does': async () => {
    equal((await d.admin('/-/drain', 'POST')).status, 202, 'drain')
    equal(await d.exit, { code: 0, signal: null }, 'exit')
    await d.launch()
    equal(Number(await d.sql('SELECT count() FROM t')), 1, 'rows')
  },
  'a unix socket serves the data port, and goes with the daemon': async () => {
    const socketPath = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-unix-')), 's')
    const d = await Daemon.start({ args: ['--set', `unix.listen=${socketPath}`, '--set', 'unix.mode=0600'] })
    equal(fs.statSync(socketPath).mode & 0o777, 0o600, 'its permissions')
    const ask = (body) => new Promise((resolve, reject) => {
      http.request({ socketPath, method: 'POST', path: '/' }, (res) => {
        let text = ''
        res.on('data', (part) => { text += part })
        res.on('end', () => resolve(text))
      }).on('error', reject).end(body)
    })
    equal(await ask('CREATE TABLE t (a Int8) ORDER BY a'), '', 'CREATE')
    equal(await ask('INSERT INTO t VALUES (1), (2)'), '', 'an insert')
    equal(await ask('SELECT count() FROM t'), '2\n', 'its rows')
    equal((await run(path.join(bin, 'sluice'), ['--url', `unix:${socketPath}`, 'query', 'SELECT count() FROM t FORMAT TSV'])).stdout, '2\n', 'the command')
    await d.kill()
    check(fs.existsSync(socketPath), 'a kill leaves it')
    await d.restart()
    equal(await ask('SELECT count() FROM t'), '2\n', 'it is made anew')
    await d.close()
    check(!fs.existsSync(socketPath), 'and gone after a clean stop')
    fs.rmdirSync(path.dirname(socketPath))
  },
  'the admin port has a socket too, which the command knows': async () => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-unix-'))
    const [data, admin] = ['data', 'admin'].map((name) => path.join(dir, name))
    const group = process.getgroups()[0]
    const d = await Daemon.start({ args: ['--set', `unix.listen=${data}`, '--set', `unix.admin_listen=${admin}`, '--set', 'unix.admin_mode=0600', '--set', `unix.group=${group}`] })
    equal([data, admin].map((file) => [fs.statSync(file).mode & 0o777, fs.statSync(file).gid]), [[0o660, group], [0o600, group]], 'permissions, group')
    const sluice = async (...args) => (await run(path.join(bin, 'sluice'), ['--url', `unix:${data}`, '--admin-url', `unix:${admin}`, ...args]))
    equal((await sluice('query', 'CREATE TABLE t (a Int8) ORDER BY a')).code, 0, 'a statement')
    for (const verb of ['status', 'flush', 'reload', 'doctor', 'support-bundle', 'tables']) {
      const { code, stderr } = await sluice(verb)
      equal([code, stderr], [0, ''], verb)
    }
    check(JSON.parse((await sluice('-o', 'json', 'status')).stdout).ready, 'ready')
    equal((await sluice('drain', '--wait', '60s')).code, 0, 'drain')
    equal(await d.exit, { code: 0, signal: null }, 'exit')
    equal(fs.readdirSync(dir), [], 'gone after a clean stop')
    fs.rmdirSync(dir)
    await d.close()
  },
  'users: each by hash, with grants': async () => {
    const sha = (text) => 'sha256:' + crypto.createHash('sha256').update(text).digest('hex')
    const file = path.join(scratch, 'users.yaml')
    fs.writeFileSync(file, `users:\n  admin:\n    password: "${sha('root-token')}"\n    grants: [insert, read, admin]\n` +
      `  agent:\n    password: "${sha('agent-token')}"\n    grants: [insert]\n    tables: ["default.a*"]\n`.replace('"default.a*"', '"default.a"'))
    const u = await Daemon.start({ args: ['--config', file] })
    const as = (user, password, query, body) => u.request({ path: '/?' + new URLSearchParams(query ? { query } : {}), body,
      headers: { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password } })
    equal((await as('admin', 'root-token', '', 'CREATE TABLE a (id UInt64) ENGINE = MergeTree ORDER BY id')).status, 200, 'admin creates')
    equal((await as('admin', 'root-token', '', 'CREATE TABLE b (id UInt64) ENGINE = MergeTree ORDER BY id')).status, 200, 'admin creates')
    equal((await as('agent', 'agent-token', 'INSERT INTO a FORMAT CSV', '1')).status, 200, 'agent inserts')
    const denied = await as('agent', 'agent-token', 'INSERT INTO b FORMAT CSV', '1')
    check(denied.text.startsWith('Code: 497.'), denied.text)
    check((await as('agent', 'agent-token', '', 'SELECT 1')).text.startsWith('Code: 497.'), 'agent may not read')
    check((await as('agent', 'agent-token', '', 'DROP TABLE a')).text.startsWith('Code: 497.'), 'agent may not drop')
    const wrong = await as('agent', 'agent-tokem', 'INSERT INTO a FORMAT CSV', '1')
    equal([wrong.status, wrong.headers['x-clickhouse-exception-code']], [403, '516'], 'a wrong password')
    const nobody = await u.request({ path: '/', body: 'SELECT 1' })
    equal([nobody.status, nobody.headers['www-authenticate']], [401, 'Basic realm="ClickHouse server HTTP API"'], 'nobody')
    equal((await u.request({ method: 'GET', path: '/ping' })).status, 200, 'ping needs no user')
    await u.close()
    check(!u.log.includes('agent-token') && !u.log.includes('root-token'), 'no secret in the log')
  },
  'a daemon that systemd started says so': async () => {
    const dir = path.join(scratch, 'notify')
    fs.mkdirSync(dir)
    const script = `import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\ns.bind(sys.argv[1])\nprint('bound',flush=True)\nwhile True:\n  t=s.recv(1000).decode()\n  print(t.strip(),flush=True)\n  if 'STOPPING' in t: break`
    const socket = path.join(dir, 's')
    const listener = spawn('python3', ['-c', script, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    listener.stdout.on('data', (data) => { said += data })
    await until(() => said.includes('bound'), 'the listener')
    const n = await Daemon.start({ env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '200000' } })
    await until(() => said.includes('READY=1') && said.includes('WATCHDOG=1'), 'READY and WATCHDOG')
    n.child.kill('SIGHUP')
    await until(() => /RELOADING=1\nMONOTONIC_USEC=\d+\n(WATCHDOG=1\n)*READY=1/.test(said), 'RELOADING, then READY')
    await n.close()
    await until(() => said.includes('STOPPING=1'), 'STOPPING')
    check(/EXTEND_TIMEOUT_USEC=90000000\n/.test(said), `time for the deadline and half a minute: ${said}`)
  },
  'sockets that systemd hands over are told apart by their names, or by their order': async () => {
    const script = `import os,socket,sys
socks=[socket.socket(), socket.socket()]
for i, s in enumerate(socks):
  s.bind(('127.0.0.1', 0)); s.listen(); os.dup2(s.fileno(), 10 + i)
for i in (0, 1): os.dup2(10 + i, 3 + i)
print(*[s.getsockname()[1] for s in socks], file=sys.stderr, flush=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2', **({'LISTEN_FDNAMES': sys.argv[1]} if sys.argv[1] else {}))
os.execv(sys.argv[2], sys.argv[2:])`
    for (const [names, first] of [['admin:http', 'adminPort'], ['http:admin', 'port'], ['', 'port'], ['sluice.socket:sluice.socket', 'port']]) {
      const s = await Daemon.start({ under: ['python3', '-c', script, names] })
      await s.logged('\n')
      equal(s[first], Number(s.log.split(' ')[0]), `the first socket of "${names}"`)
      equal([(await s.request({ method: 'GET', path: '/ping' })).status, (await s.admin('/readyz')).status], [200, 200], 'both are served')
      await s.close()
    }
  },
})
fs.rmSync(scratch, { recursive: true, force: true })
