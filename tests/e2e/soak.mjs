// soak.mjs [SECONDS]: a long run at mixed load. Memory, descriptors and threads stay where they were once everything is
// warm, no acknowledged row is missing, and every insert is accounted for. 30 minutes by default.
import crypto from 'node:crypto'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { Daemon, check, equal, test, until } from './lib.mjs'

const seconds = Number(process.argv[2] ?? 1800)
const sampleEveryMs = Math.max(100, (seconds * 1000) / 600)

// No time runs out and who is turned away for now comes again: how fast the machine is decides nothing here.
const patience = { 'wait_for_async_insert_timeout': 3600, 'sql.time_max': '1h', 'http.header_timeout': '1h', 'http.request_timeout': '1h', 'http.idle_timeout': '1h' }
const settings = Object.entries({ 'memory.max': '256MiB', ...patience }).flatMap(([name, value]) => ['--set', `${name}=${value}`])
const d = await Daemon.start({ args: settings, answerMs: 3600_000 })

// ---- load: each worker repeats one kind of work until the time is over ----

let running = true
let nextId = 1
const done = {} // how often each kind of work was done
const acknowledged = [] // ids in `kept`
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

let turnedAway = 0
async function insertOk(table, body, params, options) {
  let answer
  while ((answer = await d.insert(table, body, params, options)).status === 503) {
    turnedAway++
    await pause(1000 * Number(answer.headers['retry-after']))
  }
  equal(answer.status, 200, answer.text.slice(0, 300))
  return answer
}
const event = (id) => ({ id, ts: Date.now() / 1000 | 0, region: `region-${id % 23}`, latency_ms: (id * 7919 % 1000) / 10, text: crypto.randomBytes(48).toString('base64') })

async function insertKept(params) {
  const id = nextId++
  await insertOk('kept', JSON.stringify({ id }), params)
  acknowledged.push(id)
}

const work = {
  'one row, waited for': [40, 20, () => insertKept({})],
  'one row, spooled': [10, 50, () => insertKept({ sluice_ack: 'spooled' })],
  'one row, buffered': [20, 20, () => insertKept({ wait_for_async_insert: 0 })],
  'the same insert twice': [2, 100, async () => {
    const id = nextId++
    for (const duplicate of [undefined, '1']) {
      const answer = await insertOk('kept', JSON.stringify({ id }), { insert_deduplication_token: `soak-${id}` })
      equal(answer.headers['x-sluice-duplicate'], duplicate, 'X-Sluice-Duplicate')
    }
    acknowledged.push(id)
  }],
  'a thousand rows of JSON': [2, 100, () => {
    const first = (nextId += 1000) - 1000
    return insertOk('events', Array.from({ length: 1000 }, (_, i) => JSON.stringify(event(first + i))).join('\n'))
  }],
  'a thousand rows of CSV': [1, 200, () => {
    const first = (nextId += 1000) - 1000
    return insertOk('events', Array.from({ length: 1000 }, (_, i) => Object.values(event(first + i)).join()).join('\n'), {}, { format: 'CSV' })
  }],
  'aggregates': [2, 200, () => d.rows('SELECT region, count(), avg(latency_ms), quantile(0.95)(latency_ms) FROM events GROUP BY region')],
  'points': [2, 100, () => d.rows(`SELECT * FROM kept WHERE id = ${1 + Math.floor(Math.random() * nextId)}`)],
  'system tables': [1, 1000, async () => {
    for (const name of ['parts', 'part_log', 'asynchronous_insert_log', 'dead_letter_queue', 'metrics'])
      await d.rows(`SELECT * FROM system.${name} LIMIT 1000`)
  }],
  'bad rows, told and as letters': [1, 200, async () => {
    equal((await d.insert('events', '{"id":"no number"}')).status, 400, 'a bad row')
    await insertOk('events', '{"id":"no number"}', { wait_for_async_insert: 0 })
  }],
  'letters dropped': [1, 5000, () => d.sql('SYSTEM DROP DEAD LETTERS ALL')],
  'statements that fail': [1, 300, async () => {
    for (const sql of ['SELECT nothing FROM events', 'SELEC 1', 'SELECT * FROM nowhere'])
      check((await d.request({ path: '/', body: sql })).status >= 400, sql)
  }],
  'a table of its own': [1, 3000, async () => {
    const name = `short_${nextId++}`
    await d.sql(`CREATE TABLE ${name} (id UInt64, s String) ENGINE = MergeTree ORDER BY id`)
    await insertOk(name, '{"id":1,"s":"one"}')
    await d.sql(`ALTER TABLE ${name} ADD COLUMN more Array(String)`)
    equal(await d.rows(`SELECT count() FROM ${name}`), [[1]], 'its row')
    await d.sql(`DROP TABLE ${name}`)
  }],
  'clients that leave in the middle': [1, 200, () => new Promise((resolve) => {
    const socket = net.connect(d.port, '127.0.0.1', () => {
      socket.write('POST /?query=INSERT+INTO+events+FORMAT+JSONEachRow HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{"id":')
      setTimeout(() => socket.destroy(), 20)
    })
    socket.on('close', resolve)
    socket.on('error', () => {}) // closed by the other side first
  })],
  'connections of one request': [1, 50, () => d.request({ method: 'GET', path: '/ping', agent: false })],
  'metrics': [1, 1000, () => d.admin('/metrics')],
  'reloads': [1, 10000, () => d.child.kill('SIGHUP')],
}

const startLoad = () => Promise.all(Object.entries(work).flatMap(([name, [count, everyMs, step]]) =>
  Array.from({ length: count }, async (_, n) => {
    await pause((everyMs * n) / count)
    while (running) {
      const from = Date.now()
      await Promise.resolve(step()).catch(async (error) => { throw new Error(`${name}, ${Date.now() - from} ms: ${error.message}\n${await state()}`) })
      done[name] = (done[name] ?? 0) + 1
      await pause(everyMs * (0.5 + Math.random()))
    }
  })))

// What the daemon says of itself when something has failed.
async function state() {
  const page = (await d.admin('/metrics')).text.split('\n').filter((line) => /^sluice_(inserts_pending|buffer|memory|spool|pool|flush|http_(conn|waiters)|merges_r)/.test(line) && !line.includes('_bucket'))
  return [...page, await d.sql('SELECT elapsed, query FROM system.processes FORMAT TSV').catch((error) => error.message)].join('\n')
}

// ---- what is measured ----

const proc = (name) => fs.readFileSync(`/proc/${d.child.pid}/${name}`, 'utf8')
const status = (key) => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(proc('status'))[1])
function sample() {
  return { rss: status('RssAnon') * 1024, descriptors: fs.readdirSync(`/proc/${d.child.pid}/fd`).length, threads: status('Threads') }
}

// The growth over the whole of values: the median of the slopes between all pairs (Theil and Sen), so that no peak decides.
// Each value is the least of a window: what merges and queries take for a while is no leak.
function growth(values) {
  const windows = 40
  const size = Math.floor(values.length / windows)
  const floors = Array.from({ length: windows }, (_, i) => Math.min(...values.slice(i * size, (i + 1) * size)))
  const slopes = []
  for (let i = 0; i < windows; i++)
    for (let j = i + 1; j < windows; j++) slopes.push((floors[j] - floors[i]) / (j - i))
  slopes.sort((a, b) => a - b)
  floors.sort((a, b) => a - b)
  return { median: floors[windows / 2], grown: slopes[slopes.length >> 1] * (windows - 1) }
}

const samples = []
// What may be grown after the first third: a fifth of the memory, which the allocator takes to settle, and a few files.
const bounds = { rss: (median) => Math.max(8 << 20, median / 5), descriptors: () => 8, threads: () => 1 }

await test(d, {
  // `events` is capped, so that what a query reads comes to rest too; the rows of `kept` are all counted in the end.
  'tables': async () => {
    await d.sql('CREATE TABLE kept (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS old_parts_lifetime = 10')
    await d.sql(`CREATE TABLE events (id UInt64, ts DateTime, region LowCardinality(String), latency_ms Float64, text String)
      ENGINE = MergeTree PARTITION BY toStartOfMinute(ts) ORDER BY (region, ts)
      SETTINGS max_bytes = 8388608, old_parts_lifetime = 10`)
  },
  [`${seconds} s at mixed load`]: async () => {
    const load = startLoad()
    const end = Date.now() + seconds * 1000
    const failed = load.then(() => { throw new Error('the load ended early') })
    failed.catch(() => {}) // told by the race
    while (Date.now() < end) {
      await Promise.race([pause(sampleEveryMs), failed])
      samples.push(sample())
    }
    running = false
    await load
    if (process.env.SLUICE_SOAK_SAMPLES) fs.writeFileSync(process.env.SLUICE_SOAK_SAMPLES, JSON.stringify(samples))
    console.log(Object.entries(done).map(([name, count]) => `${count} ${name}`).join(', '), `; ${turnedAway} times turned away for now`)
    for (const name of Object.keys(work)) check(done[name] > 0, `done: ${name}`)
  },
  'memory, descriptors and threads stay where they were': () => {
    const warm = samples.slice(Math.floor(samples.length / 3))
    check(warm.length >= 80, `${warm.length} samples are enough`)
    for (const [name, bound] of Object.entries(bounds)) {
      const { median, grown } = growth(warm.map((one) => one[name]))
      console.log(`${name}: ${median} (median), grown by ${Math.round(grown)} in ${Math.round(seconds * 2 / 3)} s`)
      check(grown <= bound(median), `${name} grew by ${grown}, at most ${bound(median)}`)
    }
  },
  'every acknowledged row is there, once, and every insert is accounted for': async () => {
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    await until(async () => (await d.metric('sluice_inserts_pending')) === 0, 'nothing to be pending')
    const [[count, sum, distinct]] = await d.rows('SELECT count(), sum(id), uniqExact(id) FROM kept')
    equal([count, sum, distinct].map(Number), [acknowledged.length, acknowledged.reduce((total, id) => total + id, 0), acknowledged.length], 'rows')
    equal(await d.metric('sluice_inserts_lost_total'), 0, 'inserts lost')
    const page = (await d.admin('/metrics')).text
    const total = (name) => page.split('\n').filter((line) => new RegExp(`^sluice_${name}[ {]`).test(line))
      .reduce((all, line) => all + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
    equal(total('inserts_accepted_total'), ['inserts_written_total', 'inserts_duplicate_total', 'inserts_pending', 'inserts_dead_letters',
      'inserts_discarded_total'].reduce((all, name) => all + total(name), 0), 'the ledger')
    equal(fs.existsSync(path.join(d.data, 'damaged')) ? fs.readdirSync(path.join(d.data, 'damaged')) : [], [], 'damaged files')
  },
})
