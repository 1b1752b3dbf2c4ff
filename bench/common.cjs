// What the benchmarks share: programs and rows, CPU time out of /proc, medians with their spread, tables.
'use strict'
const { execFileSync, spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const root = path.resolve(__dirname, '..')
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function fail(text) {
  console.error(text)
  process.exit(2)
}

// --name VALUE as declared by the defaults: a number, a text, or false for an option without a value. -o json is --json.
function options(defaults, usage) {
  const args = process.argv.slice(2)
  const found = { json: false, ...defaults }
  while (args.length) {
    const arg = args.shift()
    if (arg === '-h' || arg === '--help') {
      console.log(usage)
      process.exit(0)
    }
    if (arg === '-o' && args[0] === 'json') {
      args.shift()
      found.json = true
      continue
    }
    const name = arg.replace(/^--/, '').replace(/-(.)/g, (_, c) => c.toUpperCase())
    if (!arg.startsWith('--') || !(name in found)) fail(`${arg}: unknown option\n${usage}`)
    if (typeof found[name] === 'boolean') {
      found[name] = true
      continue
    }
    if (!args.length) fail(`${arg} needs a value`)
    const value = args.shift()
    found[name] = typeof found[name] === 'number' ? Number(value) : value
    if (Number.isNaN(found[name])) fail(`${arg} needs a number`)
  }
  return found
}

const installed = (name) => name === 'sluiced' || name === 'sluice'

// SLUICE_BIN names the directory of the programs that are measured; without it the release preset is built.
function programs(...names) {
  let bin = process.env.SLUICE_BIN
  if (!bin) {
    bin = path.join(root, 'build/release/bin')
    const targets = names.map((name) => (installed(name) ? name : `bench_${name}`))
    console.error(`building ${targets.join(' ')}`)
    execFileSync('cmake', ['--preset', 'release'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
    execFileSync('cmake', ['--build', '--preset', 'release', '--target', ...targets], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  }
  bin = path.resolve(bin)
  process.env.SLUICE_BIN = bin
  return Object.fromEntries(names.map((name) =>
    [name, installed(name) ? path.join(bin, name) : path.join(bin, '../bench', name)]))
}

// On a disk, not in memory: the syncs count.
const scratch = path.join(root, 'build/bench-data')

// What is left behind when a benchmark fails goes with it.
const leftovers = new Set()
process.on('exit', () => { for (const undo of leftovers) undo() })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))

function scratchDir(name) {
  fs.mkdirSync(scratch, { recursive: true })
  return fs.mkdtempSync(path.join(scratch, `${name}-`))
}

// A file of n rows of tests/data/metrics, made by its generator where the 2,000 that are there are too few.
function rowsFile(n) {
  const given = path.join(root, 'tests/data/metrics/rows.ndjson')
  if (n <= 2000) return given
  const file = path.join(scratch, `rows-${n}.ndjson`)
  if (!fs.existsSync(file)) {
    console.error(`generating ${n} rows`)
    fs.mkdirSync(scratch, { recursive: true })
    const out = fs.openSync(`${file}.tmp`, 'w')
    execFileSync('python3', [path.join(root, 'tests/data/metrics/gen.py'), '--rows', String(n)], { stdio: ['ignore', out, 'inherit'] })
    fs.closeSync(out)
    fs.renameSync(`${file}.tmp`, file)
  }
  return file
}

// The first n rows of such a file.
function firstRows(rows, n) {
  const file = path.join(scratch, `first-${n}.ndjson`)
  if (!fs.existsSync(file)) {
    const text = fs.readFileSync(rows)
    let at = 0
    for (let i = 0; i < n; i++) at = text.indexOf(10, at) + 1
    fs.writeFileSync(file, text.subarray(0, at))
  }
  return file
}

const table = `(ts DateTime64(3), service LowCardinality(String), host String, region String, metric String, value Float64,
  tags Map(String, String)) ENGINE = MergeTree ORDER BY (service, metric, ts)`

// CPU seconds a process used so far, to the nanosecond, and how they fall to its threads by name.
function cpu(pid) {
  const threads = {}
  let total = 0
  for (const tid of fs.readdirSync(`/proc/${pid}/task`)) {
    const seconds = Number(fs.readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]) / 1e9
    const name = fs.readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trim()
    threads[name] = (threads[name] ?? 0) + seconds
    total += seconds
  }
  return { total, threads }
}

// CPU seconds that the whole machine was busy, and that it had, so far.
function machineTime() {
  const ticks = fs.readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/).slice(1, 9).map(Number)
  const [user, nice, system, idle, iowait, irq, softirq, steal] = ticks
  const busy = user + nice + system + irq + softirq
  return { busy: busy / 100, all: (busy + idle + iowait + steal) / 100 }
}

// Waits until a process uses less than one hundredth of a core over a second. Returns the CPU time reached.
async function untilIdle(pid, secondsMax = 120) {
  let before = cpu(pid)
  for (let i = 0; i < secondsMax; i++) {
    await sleep(1000)
    const now = cpu(pid)
    if (now.total - before.total < 0.01) return now
    before = now
  }
  throw new Error(`process ${pid} does not come to rest within ${secondsMax} s`)
}

function spread(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const n = sorted.length
  const median = n % 2 ? sorted[(n - 1) / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2
  return { median, min: sorted[0], max: sorted[n - 1] }
}

const digits = (x) => (x >= 1000 ? x.toFixed(0) : x >= 100 ? x.toFixed(1) : x >= 1 ? x.toFixed(2) : x.toFixed(3))
const show = (s) => (s.min === s.max ? digits(s.median) : `${digits(s.median)} (${digits(s.min)}..${digits(s.max)})`)

function printTable(head, lines) {
  const cells = [head, ...lines].map((line) => line.map(String))
  const widths = head.map((_, i) => Math.max(...cells.map((line) => line[i].length)))
  for (const line of cells) console.log(line.map((cell, i) => (i ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join('  ').trimEnd())
}

function machine() {
  let commit = 'unknown'
  try {
    commit = execFileSync('git', ['describe', '--always', '--dirty'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch { /* not a clone */ }
  return { cores: os.cpus().length, cpu: os.cpus()[0].model, kernel: os.release(), commit }
}

// Runs a program that prints JSON; its exit status has to be 0.
function runJson(program, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.on('data', (data) => { out += data })
    child.on('error', reject)
    child.on('close', (code) => (code === 0 ? resolve(JSON.parse(out)) : reject(new Error(`${program} ${args.join(' ')}: exit status ${code}\n${out}`))))
  })
}

// Programs that write their port to a file once they listen.
async function startLimit(program, args) {
  const dir = scratchDir('limit')
  const file = path.join(dir, 'port')
  const child = spawn(program, ['--port-file', file, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  const exit = new Promise((resolve) => child.on('exit', resolve))
  const undo = () => child.kill('SIGKILL')
  leftovers.add(undo)
  while (!fs.existsSync(file)) {
    if (child.exitCode !== null) throw new Error('limit_mhd did not start')
    await sleep(5)
  }
  const port = Number(/^data=(\d+)$/m.exec(fs.readFileSync(file, 'utf8'))[1])
  fs.rmSync(dir, { recursive: true })
  return {
    pid: child.pid,
    port,
    async stop() {
      child.kill('SIGTERM')
      await exit
      leftovers.delete(undo)
    },
  }
}

// The daemon on an empty store with the table `metrics`.
async function startDaemon(args) {
  const { Daemon } = await import(path.join(root, 'tests/e2e/lib.mjs'))
  const dir = scratchDir('sluiced')
  const remove = () => fs.rmSync(dir, { recursive: true, force: true })
  leftovers.add(remove)
  const daemon = await Daemon.start({ dir, args })
  const undo = () => daemon.child.kill('SIGKILL')
  leftovers.delete(remove) // in this order: kill, then remove
  leftovers.add(undo).add(remove)
  await daemon.sql(`CREATE TABLE metrics ${table}`)
  return {
    daemon,
    pid: daemon.child.pid,
    port: daemon.port,
    async stop() {
      await daemon.close()
      remove()
      leftovers.delete(undo)
      leftovers.delete(remove)
    },
  }
}

module.exports = {
  cpu, digits, fail, firstRows, machine, machineTime, options, printTable, programs, root, rowsFile, runJson, scratch, scratchDir,
  show, sleep, spread, startDaemon, startLimit, table, untilIdle,
}
