// The metrics page as Prometheus sees it: promtool finds nothing, and a real Prometheus scrapes it.
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { spawn, spawnSync } from 'node:child_process'
import { Daemon, check, equal, skip, test, until } from './lib.mjs'

const has = (program) => spawnSync(program, ['--version']).error === undefined
if (!has('promtool') || !has('prometheus')) skip('prometheus is not installed (script/test brings it)')

const freePort = () => new Promise((resolve) => {
  const server = net.createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    server.close(() => resolve(port))
  })
})

const d = await Daemon.start()
await test(d, {
  'some traffic': async () => {
    await d.sql('CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a')
    for (let i = 0; i < 5; i++) equal((await d.insert('t', '{"a":1}')).status, 200, 'insert')
    await d.insert('t', '{"a":"x"}', { wait_for_async_insert: 0 })
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    await d.insert('nowhere', '{"a":1}')
  },
  'promtool check metrics finds nothing': async () => {
    const page = (await d.admin('/metrics')).text
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' })
    equal([status, stdout, stderr], [0, '', ''], 'promtool')
    check(page.includes('sluice_inserts_total{') && page.includes('process_cpu_seconds_total'), 'families are there')
  },
  'the data port serves the same page': async () => {
    const r = await d.request({ method: 'GET', path: '/metrics' })
    equal(r.status, 200, 'status')
    check(r.headers['content-type'].startsWith('text/plain; version=0.0.4'), r.headers['content-type'])
  },
  'OpenMetrics when asked': async () => {
    const r = await d.request({ method: 'GET', path: '/metrics', headers: { Accept: 'application/openmetrics-text;version=1.0.0' } })
    check(r.headers['content-type'].startsWith('application/openmetrics-text'), r.headers['content-type'])
    check(r.text.endsWith('# EOF\n'), 'the page ends with # EOF')
  },
  'a real Prometheus scrapes it': async () => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-prometheus-'))
    const port = await freePort()
    fs.writeFileSync(path.join(dir, 'p.yml'), `global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: sluice\n  static_configs:\n  - targets: ['127.0.0.1:${d.adminPort}']\n`)
    const prometheus = spawn('prometheus', ['--config.file', path.join(dir, 'p.yml'), '--storage.tsdb.path', path.join(dir, 'db'),
      '--web.listen-address', `127.0.0.1:${port}`], { stdio: 'ignore' })
    try {
      const value = await until(async () => {
        try {
          const r = await d.request({ port, method: 'GET', path: '/api/v1/query?query=' + encodeURIComponent('sum(sluice_inserts_total{ack="stored"})'), agent: undefined })
          return JSON.parse(r.text).data?.result?.[0]?.value?.[1]
        } catch { return null }
      }, 'the first scrape')
      equal(value, '5', 'stored inserts as Prometheus sees them')
    } finally {
      prometheus.kill('SIGKILL')
      fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
    }
  },
})
