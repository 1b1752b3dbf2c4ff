// What the end-to-end tests share: a daemon of their own on free ports and a scratch directory, and HTTP to it.
//
// SLUICE_BIN names the directory of the programs. No sleeps as synchronisation: waiting is for a file, an exit, an answer.
import { spawn, execFile } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'

export const bin = path.resolve(process.env.SLUICE_BIN ?? 'build/release/bin')
export const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../..')

// Ends the test as skipped (ctest's SKIP_RETURN_CODE), saying why.
export function skip(why) {
  console.log(`skipped: ${why}`)
  process.exit(77)
}

export function check(fact, what) {
  if (!fact) throw new Error(`not so: ${what}`)
}

export function equal(got, want, what) {
  const a = JSON.stringify(got)
  const b = JSON.stringify(want)
  if (a !== b) throw new Error(`${what}: got ${a?.slice(0, 600)}, want ${b?.slice(0, 600)}`)
}

// Part of every secret of a test: no log, table or answer may have it.
export const canary = 'canary-5c1f0e'
const LOG_KEPT = 200000

// Whatever happened in a test, what the log says of it is a JSON object a line, and no secret.
function checkLog(log) {
  const lines = log.split('\n').slice(log.length < LOG_KEPT ? 0 : 1, -1)
  for (const line of lines) {
    let entry = null
    try { entry = JSON.parse(line) } catch { /* told below */ }
    check(['time', 'level', 'event', 'message'].every((key) => typeof entry?.[key] === 'string'), `a line of the log: ${line}`)
    check(entry.message.startsWith(entry.event), `an event that begins its message: ${line}`)
  }
  check(!log.includes(canary), 'no secret in the log')
}

async function until(ready, why, seconds = 120) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
    const value = await ready()
    if (value) return value
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`waited too long for ${why}`)
}
export { until }

// A library that slows syncs down and moves the clock, or null where a sanitizer has to come first (tests/support/faults.c).
const faultsFile = path.resolve(bin, '../tests/libfaults.so')
const sanitized = fs.readFileSync(path.join(bin, 'sluiced')).includes('__asan_init')
export const faults = !sanitized && fs.existsSync(faultsFile) ? faultsFile : null
export { sanitized }

export class Daemon {
  // under: a program and its first arguments, which runs the daemon. answerMs: how long a request waits.
  static async start({ dir, args = [], env = {}, under = [], answerMs = 60000 } = {}) {
    const d = new Daemon()
    d.answerMs = answerMs
    d.own = !dir
    d.dir = dir ?? fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-e2e-'))
    d.args = args
    d.env = env
    d.under = under
    await d.launch()
    return d
  }

  async launch() {
    const ports = path.join(this.dir, 'ports')
    fs.rmSync(ports, { force: true })
    this.log = ''
    this.exited = null
    const [program, ...first] = [...this.under, path.join(bin, 'sluiced')]
    this.child = spawn(program, [...first, '--data-dir', path.join(this.dir, 'data'), '--listen', '127.0.0.1:0',
      '--admin-listen', '127.0.0.1:0', '--port-file', ports, ...this.args],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...this.env } })
    this.child.stderr.on('data', (data) => { this.log = (this.log + data).slice(-LOG_KEPT) })
    this.exit = new Promise((resolve) => this.child.on('exit', (code, signal) => resolve(this.exited = { code, signal })))
    this.closed = new Promise((resolve) => this.child.on('close', resolve)) // its last words are read
    await until(() => {
      if (this.exited) throw new Error(`the daemon ended: ${JSON.stringify(this.exited)}\n${this.log}`)
      return fs.existsSync(ports)
    }, 'the port file')
    const text = fs.readFileSync(ports, 'utf8')
    this.port = Number(/^data=(\d+)$/m.exec(text)[1])
    this.adminPort = Number(/^admin=(\d+)$/m.exec(text)[1])
    this.url = `http://127.0.0.1:${this.port}`
    this.adminUrl = `http://127.0.0.1:${this.adminPort}`
    this.agent?.destroy()
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 64 })
  }

  get data() { return path.join(this.dir, 'data') }

  // SIGTERM and the exit status.
  async stop() {
    this.child.kill('SIGTERM')
    const { code, signal } = await this.exit
    await this.closed
    if (signal) throw new Error(`the daemon died of ${signal}\n${this.log.slice(-20000)}`)
    return code
  }

  async kill() {
    this.child.kill('SIGKILL')
    await this.exit
  }

  async restart() {
    if (!this.exited) equal(await this.stop(), 0, 'exit status')
    await this.launch()
  }

  // Waits until the log has the text, or as many matches of the pattern: an answer may be here before the line that goes with it.
  logged(what, times = 1) {
    const seen = () => (typeof what === 'string' ? this.log.split(what).length - 1 : [...this.log.matchAll(what)].length)
    return until(() => seen() >= times, `"${what}" in the log`)
  }

  // The end of a test: a clean stop, and the scratch directory goes.
  async close() {
    if (!this.exited) equal(await this.stop(), 0, 'exit status')
    await this.closed
    this.agent.destroy()
    if (this.under.length === 0) checkLog(this.log) // else others write there too
    if (this.own) fs.rmSync(this.dir, { recursive: true, force: true })
  }

  request({ method = 'POST', path: target = '/', headers = {}, body, port = this.port, agent = this.agent, timeout = this.answerMs }) {
    return new Promise((resolve, reject) => {
      const req = http.request({ host: '127.0.0.1', port, method, path: target, headers, agent, timeout }, (res) => {
        const parts = []
        res.on('data', (part) => parts.push(part))
        res.on('error', reject)
        res.on('end', () => {
          const bytes = Buffer.concat(parts)
          resolve({ status: res.statusCode, headers: res.headers, bytes, text: bytes.toString('utf8') })
        })
      })
      req.on('timeout', () => req.destroy(new Error('no answer in time')))
      req.on('error', reject)
      req.end(body)
    })
  }

  // A statement that has to succeed; its answer as text.
  async sql(query, params = {}) {
    const r = await this.request({ path: '/?' + new URLSearchParams(params), body: query })
    if (r.status !== 200) throw new Error(`${query}: ${r.status} ${r.text}`)
    return r.text
  }

  async rows(query, params = {}) {
    const text = await this.sql(`${query} FORMAT JSONCompactEachRow`, params)
    return text.split('\n').filter(Boolean).map((line) => JSON.parse(line))
  }

  insert(table, body, params = {}, options = {}) {
    const format = options.format ?? 'JSONEachRow'
    return this.request({
      ...options,
      path: '/?' + new URLSearchParams({ query: `INSERT INTO ${table} FORMAT ${format}`, ...params }),
      body,
    })
  }

  admin(target, method = 'GET') {
    return this.request({ port: this.adminPort, path: target, method, agent: undefined })
  }

  async metric(name) {
    const { text } = await this.admin('/metrics')
    let sum = 0
    for (const line of text.split('\n')) {
      if (line.startsWith(name + ' ') || line.startsWith(name + '{')) sum += Number(line.slice(line.lastIndexOf(' ') + 1))
    }
    return sum
  }
}

// Runs tasks (functions) with at most n at once.
export async function parallel(n, tasks) {
  const results = new Array(tasks.length)
  let next = 0
  await Promise.all(Array.from({ length: Math.min(n, tasks.length) }, async () => {
    while (next < tasks.length) {
      const i = next++
      results[i] = await tasks[i]()
    }
  }))
  return results
}

export function run(program, args, options = {}) {
  return new Promise((resolve) => {
    execFile(program, args, { maxBuffer: 1 << 28, ...options }, (error, stdout, stderr) =>
      resolve({ code: error ? (error.code ?? 1) : 0, stdout, stderr }))
  })
}

// The folder with the tools that script/test installs; the name of a package in it, or null.
export const tools = path.resolve(process.env.SLUICE_ORACLE_DIR ?? path.join(root, 'build/oracle'))
export const hasPackage = (name, under = '.') => fs.existsSync(path.join(tools, under, 'node_modules', name, 'package.json'))

// Runs the test's steps in order, each printed; the first failure ends it with the daemon's last words.
export async function test(daemon, steps) {
  try {
    for (const [name, step] of Object.entries(steps)) {
      await step()
      console.log(`ok ${name}`)
    }
    await daemon?.close()
  } catch (error) {
    console.log(`FAILED ${error.stack}`)
    if (daemon) console.log(daemon.log.split('\n').slice(-40).join('\n'))
    daemon?.child.kill('SIGKILL')
    process.exit(1)
  }
}
