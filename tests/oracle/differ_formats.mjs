// Sends random INSERTs to the real engine and to a daemon and prints those that they answer differently. See README.md.
//
//   node differ_formats.mjs --seed N --tables N [--format NAME,...] [--out FILE] [--engine URL] [--url URL]
//
// Each seed makes tables; each table gets bodies that the engine wrote itself, with the same settings, and that were then
// spoiled or varied as clients do. A difference is made as small as it stays a difference and printed as a case of
// tests/cases (with "got", what the daemon did), one on a line.
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Daemon } from '../e2e/lib.mjs'
import { insertOf, tableOf } from './differ_tables.mjs'
import { settingsFor, formatsNamed } from './differ_settings.mjs'
import { spoil } from './differ_spoil.mjs'

const BODIES_PER_TABLE = 12
const WORKERS = 4
const SHRINK_TRIES = 60

const READ = {
  output_format_json_quote_64bit_integers: '1', output_format_json_quote_denormals: '1',
  output_format_json_quote_decimals: '1', output_format_json_quote_64bit_floats: '0',
  output_format_json_escape_forward_slashes: '0', output_format_json_named_tuples_as_objects: '0',
  output_format_json_map_as_array_of_tuples: '0', output_format_json_validate_utf8: '0',
}
// Parsed as an asynchronous insert is; a repeated body is no duplicate.
const INSERT = { allow_suspicious_low_cardinality_types: '1', input_format_parallel_parsing: '0', async_insert: '0', insert_deduplicate: '0' }
const INSERT_OURS = { insert_deduplicate: '0' }
const DDL = {
  allow_suspicious_low_cardinality_types: '1', allow_suspicious_fixed_string_types: '1', allow_suspicious_types_in_order_by: '1',
}

class Server {
  constructor(url, insertSettings) {
    this.port = Number(new URL(url).port)
    this.insertSettings = insertSettings
    this.agent = new http.Agent({ keepAlive: true, maxSockets: WORKERS })
  }

  request(params, body) {
    return new Promise((resolve, reject) => {
      const req = http.request({ host: '127.0.0.1', port: this.port, method: 'POST', agent: this.agent, timeout: 30000,
        path: '/?' + new URLSearchParams(params) }, (res) => {
        const parts = []
        res.on('data', (part) => parts.push(part))
        res.on('error', reject)
        res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(parts) }))
      })
      req.on('timeout', () => req.destroy(new Error('no answer in time')))
      req.on('error', reject)
      req.end(body)
    })
  }

  async must(query, params = {}) {
    const r = await this.request(params, query)
    if (r.status !== 200) throw new Error(`${query}\n${r.body.toString('latin1').slice(0, 400)}`)
    return r.body
  }

  // What a case gives here: rows as text, sorted; the code of the error.
  async run(database, c) {
    const r = await this.request({ ...this.insertSettings, database, query: c.insert_query, ...c.settings }, c.body)
    const code = Number(r.headers['x-clickhouse-exception-code'] ?? 0)
    const back = (await this.must('SELECT * FROM t FORMAT JSONCompactEachRow', { database, ...READ })).toString('latin1')
    if (back !== '') await this.must('TRUNCATE TABLE t', { database })
    return { code, status: r.status, message: r.body.toString('latin1').slice(0, 300), rows: back.split('\n').filter(Boolean).sort() }
  }
}

// By the code alone: what is full for now has another status here (tests/e2e/cases.mjs).
const outcome = (r) => JSON.stringify(r.code ? [r.code] : r.rows)

class Worker {
  constructor(number, servers, rng, options) {
    Object.assign(this, { database: `differ_${number}`, servers, rng, options })
  }

  async open(ddl) {
    const made = await Promise.allSettled(this.servers.map(async (s) => {
      await s.must(`CREATE DATABASE IF NOT EXISTS ${this.database}`)
      await s.must('DROP TABLE IF EXISTS t SYNC', { database: this.database })
      await s.must(ddl, { database: this.database, ...DDL })
    }))
    const [engine, ours] = made
    if (engine.status === 'fulfilled' && ours.status === 'rejected') console.error(`ours refuses: ${ours.reason.message}`)
    return made.every((m) => m.status === 'fulfilled')
  }

  run(c) {
    return Promise.all(this.servers.map((s) => s.run(this.database, c)))
  }

  async differs(c) {
    const [want, got] = await this.run(c)
    return outcome(want) === outcome(got) ? null : { want, got }
  }

  // Leaves out settings, then runs of bytes, as long as the codes of both answers stay what they are.
  async shrink(c, found) {
    let best = c
    let tries = SHRINK_TRIES
    const same = async (candidate) => {
      if (tries-- <= 0) return false
      const d = await this.differs(candidate)
      if (!d || d.want.code !== found.want.code || d.got.code !== found.got.code) return false
      best = candidate
      return true
    }
    for (const name of Object.keys(c.settings)) {
      const { [name]: _, ...rest } = best.settings
      await same({ ...best, settings: rest })
    }
    for (let size = Math.ceil(best.body.length / 2); size >= 1 && tries > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let at = 0; at < best.body.length && tries > 0;) {
        const body = Buffer.concat([best.body.subarray(0, at), best.body.subarray(at + size)])
        if (!(await same({ ...best, body }))) at += size
      }
    }
    return best
  }

  async table() {
    const { rng } = this
    const format = rng.pick(this.options.formats)
    const table = tableOf(rng)
    if (!(await this.open(table.ddl))) return []
    const found = []
    for (let i = 0; i < BODIES_PER_TABLE; i++) {
      const { input, output } = settingsFor(rng, format)
      const { list, select } = insertOf(rng, table.columns, rng.below(4))
      const written = await this.servers[0].request({ database: this.database, ...output }, `${select} FORMAT ${format.output ?? format.name}`)
      if (written.status !== 200) continue
      const body = spoil(rng, format, written.body)
      const c = { insert_query: `INSERT INTO t${list} FORMAT ${format.name}`, settings: input, body }
      this.options.count.cases++
      const d = await this.differs(c)
      if (!d) continue
      const small = await this.shrink(c, d)
      found.push(record(format, table.ddl, small, await this.run(small)))
    }
    return found
  }
}

function record(format, ddl, c, [want, got]) {
  const text = c.body.toString('utf8')
  const plain = Buffer.from(text, 'utf8').equals(c.body)
  return {
    format: format.name, about: `${want.code || 'rows'} there, ${got.code || 'rows'} here`, table_ddl: ddl, insert_query: c.insert_query,
    settings: c.settings, ...(plain ? { body: text } : { body_base64: c.body.toString('base64') }),
    want: want.code ? want.message : want.rows, got: got.code ? got.message : got.rows,
  }
}

function rngOf(seed) {
  let s = (seed * 0x9e3779b9) >>> 0 || 1
  const next = () => { s ^= s << 13; s >>>= 0; s ^= s >>> 17; s ^= s << 5; s >>>= 0; return s }
  const below = (n) => next() % n
  return { below, pick: (list) => list[below(list.length)], one: (n) => below(n) === 0 }
}

async function main(argv) {
  const options = { seed: 1, tables: 100 }
  for (let i = 0; i < argv.length; i += 2) options[argv[i].slice(2)] = argv[i + 1]
  const oracle = path.resolve(process.env.SLUICE_ORACLE_DIR ?? import.meta.dirname)
  const { startRefServer } = await import(pathToFileURL(path.join(oracle, 'refserver.mjs')).href)
  const engine = options.engine ? { url: options.engine, stop() {} } : await startRefServer({ respawn: true })
  const daemon = options.url ? { url: options.url, close() {} } : await Daemon.start({
    args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=2'] })
  const servers = [new Server(engine.url, INSERT), new Server(daemon.url, INSERT_OURS)]
  const count = { cases: 0, found: 0 }
  let left = Number(options.tables)
  const work = async (number) => {
    const worker = new Worker(number, servers, null, { formats: formatsNamed(options.format), count })
    while (left > 0) {
      const seed = Number(options.seed) * 100000 + left--
      worker.rng = rngOf(seed)
      try {
        for (const c of await worker.table()) {
          count.found++
          const line = JSON.stringify({ id: `${seed}`, ...c })
          if (options.out) fs.appendFileSync(options.out, line + '\n')
          else console.log(line)
        }
      } catch (e) {
        console.error(`table ${seed}: ${e.message}`)
        await new Promise((resolve) => setTimeout(resolve, 3000)) // the engine ended itself and comes back
      }
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, (_, i) => work(i)))
  console.error(`${count.cases} inserts, ${count.found} differences`)
  servers.forEach((s) => s.agent.destroy())
  await engine.stop()
  await daemon.close()
}

await main(process.argv.slice(2))
