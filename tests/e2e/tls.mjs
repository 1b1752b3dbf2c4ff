// TLS: the data port again, on a listener and a thread of its own, with a certificate that a reload changes.
import fs from 'node:fs'
import https from 'node:https'
import path from 'node:path'
import tls from 'node:tls'
import { Daemon, bin, check, equal, root, run, test, until } from './lib.mjs'

const of = (name) => path.join(root, 'tests/data/tls', name)
const ca = ['one.pem', 'two.pem'].map((name) => fs.readFileSync(of(name)))
const dir = fs.mkdtempSync('/tmp/sluice-tls-')
const files = ['server.pem', 'server.key'].map((name) => path.join(dir, name))
const put = (cert, key) => [of(cert), of(key)].forEach((from, i) => fs.copyFileSync(from, files[i]))
put('one.pem', 'one.key')
const config = path.join(dir, 'sluice.yaml')
const clients = (names) => fs.writeFileSync(config, `users:
  default: {grants: [insert, read, admin]}
  agent: {grants: [read], certificates: [${names}]}
`)
clients('agent-7')
const shown = (name) => ({ cert: fs.readFileSync(of(`${name}.pem`)), key: fs.readFileSync(of(`${name}.key`)) })

const d = await Daemon.start({ args: ['--config', config, '--set', `tls.client_ca=${of('clients_ca.pem')}`, '--set', 'tls.listen=127.0.0.1:0', '--set', `tls.cert=${files[0]}`, '--set', `tls.key=${files[1]}`] })
const port = Number(/^tls=(\d+)$/m.exec(fs.readFileSync(path.join(d.dir, 'ports'), 'utf8'))[1])
const agent = new https.Agent({ keepAlive: true, maxSockets: 1 })
const ask = (body, { target = '/', use, headers, client } = {}) => new Promise((resolve, reject) => {
  const req = https.request({ host: '127.0.0.1', port, path: target, method: 'POST', ca, agent: use ?? new https.Agent(), headers, timeout: 60000, ...client }, (res) => {
    const parts = []
    res.on('data', (part) => parts.push(part))
    res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, text: Buffer.concat(parts).toString(), name: common }))
  })
  let common
  req.on('socket', (socket) => {
    const note = () => { common = socket.getPeerCertificate().subject?.CN }
    socket.encrypted && socket.getPeerCertificate().subject ? note() : socket.once('secureConnect', note)
  })
  req.on('error', reject)
  req.end(body)
})
const shake = (options) => new Promise((resolve) => {
  const socket = tls.connect({ host: '127.0.0.1', port, ca, ...options }, () => resolve({ protocol: socket.getProtocol(), socket }))
  socket.on('error', (error) => resolve({ error }))
})
const reload = async () => {
  const { status, text } = await d.admin('/-/reload', 'POST')
  return { status, text }
}

await test(d, {
  'inserts and answers as on the plain port': async () => {
    equal((await ask('CREATE TABLE t (a UInt32, s String) ENGINE = MergeTree ORDER BY a')).status, 200, 'CREATE')
    const answer = await ask(`1\t${'x'.repeat(100000)}\n`, { target: '/?query=INSERT+INTO+t+FORMAT+TSV' })
    equal([answer.status, answer.headers['x-sluice-ack']], [200, 'stored'], 'an insert')
    equal((await ask('SELECT a, length(s) FROM t')).text, '1\t100000\n', 'the row')
    const many = await Promise.all(Array.from({ length: 64 }, (_, i) => ask(`${i + 2}\ty\n`, { target: '/?query=INSERT+INTO+t+FORMAT+TSV' })))
    check(many.every((one) => one.status === 200 && one.headers['x-sluice-ack'] === 'stored'), 'waiters at once')
    equal((await ask('SELECT count(), sum(a) FROM t')).text, `65\t${65 * 66 / 2}\n`, 'all rows')
  },
  'TLS 1.2 and 1.3, nothing older; no plain HTTP': async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3']) {
      const { protocol, socket } = await shake({ minVersion: version, maxVersion: version })
      equal(protocol, version, 'the protocol')
      socket.destroy()
    }
    check((await shake({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })).error, 'TLS 1.1 is refused')
    await fetch(`http://127.0.0.1:${port}/ping`).then(() => check(false, 'plain HTTP is not answered'), () => {})
  },
  'the command checks the certificate against SSL_CERT_FILE': async () => {
    const query = (env) => run(path.join(bin, 'sluice'), ['--url', `https://localhost:${port}`, 'query', 'SELECT count() FROM t FORMAT TSV'], { env })
    equal((await query({ SSL_CERT_FILE: of('one.pem') })).stdout, '65\n', 'its CA')
    const other = await query({ SSL_CERT_FILE: of('two.pem') })
    check(other.code === 1 && /certificate/.test(other.stderr), `another CA: ${other.code} ${other.stderr}`)
  },
  'a client that leaves while it waits is noticed': async () => {
    const { socket } = await shake({})
    socket.write('POST /?query=INSERT+INTO+t+FORMAT+TSV&async_insert_busy_timeout_min_ms=60000&async_insert_busy_timeout_max_ms=60000 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n99\tz\n')
    await until(async () => await d.metric('sluice_buffer_inserts') === 1, 'the insert to wait')
    const open = await d.metric('sluice_http_connections')
    socket.destroy()
    await until(async () => await d.metric('sluice_http_connections') < open, 'the client to be missed')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
  },
  'a certificate speaks for the user who has its name': async () => {
    const who = async (options) => (await ask('SELECT currentUser()', options)).text
    const as = { 'X-ClickHouse-User': 'agent' }
    const status = async (options) => (await ask('SELECT 1', options)).status
    equal(await who({}), 'default\n', 'without one')
    equal(await who({ client: shown('client') }), 'agent\n', 'with one')
    equal(await who({ client: shown('client'), headers: as }), 'agent\n', 'and the name said')
    equal(await who({ client: shown('client'), headers: { 'X-ClickHouse-User': 'default' } }), 'default\n', 'another user, who has no password')
    equal(await status({ headers: as }), 403, 'the name alone')
    equal(await status({ client: shown('stranger'), headers: as }), 403, 'the same name from another CA')
    equal(await who({ client: shown('stranger') }), 'default\n', 'which is as none')
    equal(await status({ client: shown('client'), headers: { ...as, 'X-ClickHouse-Key': 'x' } }), 403, 'and a wrong password')
    equal((await ask('DROP TABLE t', { client: shown('client') })).status, 500, 'with its rights, not more')
    const keep = new https.Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; i < 2; i++) equal(await who({ client: shown('client'), use: keep }), 'agent\n', 'a connection that stays')
    clients('agent-8')
    equal((await reload()).status, 200, 'a reload')
    equal(await who({ client: shown('client'), use: keep }), 'default\n', 'it is nobody\'s any more')
    clients('"spiffe://example/agent"')
    equal((await reload()).status, 200, 'a reload')
    equal(await who({ client: shown('client') }), 'agent\n', 'a name of the SAN')
    keep.destroy()
    const query = (env) => run(path.join(bin, 'sluice'), ['--url', `https://localhost:${port}`, 'query', 'SELECT currentUser() FORMAT TSV'], { env: { SSL_CERT_FILE: of('one.pem'), ...env } })
    equal((await query({ SLUICE_TLS_CERT: of('client.pem'), SLUICE_TLS_KEY: of('client.key') })).stdout, 'agent\n', 'the command shows one')
  },
  'a reload shows another certificate and ends no connection': async () => {
    equal((await ask('SELECT 1', { use: agent })).name, 'sluice-test-one', 'the first certificate')
    put('two.pem', 'two.key')
    equal((await reload()).status, 200, 'reload')
    equal((await ask('SELECT 1')).name, 'sluice-test-two', 'a new connection')
    equal((await ask('SELECT 1', { use: agent })).name, 'sluice-test-one', 'the open one')
  },
  'a pair that does not fit is refused, the old one stays': async () => {
    put('one.pem', 'two.key')
    const { status, text } = await reload()
    check(status >= 400 && text.includes('does not belong to certificate'), `${status} ${text}`)
    equal((await ask('SELECT 1')).name, 'sluice-test-two', 'the old pair')
    const checked = await run(path.join(bin, 'sluiced'), ['--check-config', '--set', 'tls.listen=127.0.0.1:0', '--set', `tls.cert=${files[0]}`, '--set', `tls.key=${files[1]}`])
    equal(checked.code, 78, '--check-config sees it too')
  },
  'SIGTERM answers those who wait': async () => {
    const waiting = ask('500\tlast\n', { target: '/?query=INSERT+INTO+t+FORMAT+TSV&async_insert_busy_timeout_min_ms=60000&async_insert_busy_timeout_max_ms=60000' })
    await until(async () => await d.metric('sluice_buffer_inserts') === 1, 'the insert to wait')
    equal(await d.stop(), 0, 'exit')
    const answer = await waiting
    equal([answer.status, answer.headers['x-sluice-ack']], [200, 'stored'], 'the answer')
  },
})
fs.rmSync(dir, { recursive: true })
