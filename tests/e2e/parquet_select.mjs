// SELECT ... FORMAT Parquet: the answer is a file that goes back in as it came out, that shares a batch with inserts of the
// same kind, and that other readers, where they are installed, read alike.
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, check, equal, hasPackage, run, test, tools } from './lib.mjs'

const columns = `id UInt64, i8 Int8, i16 Int16, i32 Nullable(Int32), u8 UInt8, u16 UInt16, u32 UInt32, f Float32, g Nullable(Float64), ok Bool,
  s String, lc LowCardinality(Nullable(String)), fs FixedString(3), d Date, d32 Date32, t DateTime, t3 DateTime64(3), t6 DateTime64(6),
  dec Decimal(9, 2), big Decimal(38, 10), id2 UUID, e Enum8('a' = 1, 'b' = 2), i128 Int128, u256 UInt256, v4 IPv4, v6 IPv6, a Array(Nullable(Int32)),
  aa Array(Array(String)), m Map(String, UInt16), p Tuple(x Int32, y Array(String))`
const row = (n) => JSON.stringify({
  id: String(n), i8: -n % 100, i16: -n, i32: n % 3 ? n : null, u8: n % 256, u16: n * 7, u32: 4000000000 + n, f: n / 4, g: n % 5 ? n / 3 : null, ok: n % 2 === 0,
  s: `text ${n} é`, lc: n % 4 ? `kind ${n % 3}` : null, fs: 'abc', d: '2024-01-02', d32: '1950-03-04', t: '2024-01-02 03:04:05',
  t3: '2024-01-02 03:04:05.678', t6: '1960-01-02 03:04:05.678901', dec: '12.34', big: `-${n}.0123456789`, id2: '00112233-4455-6677-8899-aabbccddeeff',
  e: n % 2 ? 'a' : 'b', i128: `-${n}00000000000000000001`, u256: `${n}00000000000000000000000000000000000001`, v4: '1.2.3.4', v6: '2001:db8::1', a: [n, null, 3], aa: [['x'], [], ['y', `${n}`]].slice(0, n % 4), m: { k: n % 100, l: 2 },
  p: { x: n, y: ['z'] },
})

const d = await Daemon.start()
const file = path.join(d.dir, 'answer.parquet')
const all = (table) => d.rows(`SELECT * FROM ${table} ORDER BY id`)
let readers = null

async function parquet(query) {
  const answer = await d.request({ path: '/', body: `${query} FORMAT Parquet` })
  equal(answer.status, 200, answer.text.slice(0, 300))
  equal(answer.headers['content-type'], 'application/octet-stream', 'Content-Type')
  equal(answer.headers['x-clickhouse-format'], 'Parquet', 'X-ClickHouse-Format')
  return answer.bytes
}

await test(d, {
  'an answer is a file': async () => {
    await d.sql(`CREATE TABLE t (${columns}) ENGINE = MergeTree ORDER BY id`)
    const put = await d.insert('t', Array.from({ length: 1000 }, (_, n) => row(n)).join('\n'))
    equal(put.status, 200, put.text)
    const bytes = await parquet('SELECT * FROM t ORDER BY id')
    equal(bytes.subarray(0, 4).toString(), 'PAR1', 'its first bytes')
    equal(bytes.subarray(-4).toString(), 'PAR1', 'its last bytes')
    fs.writeFileSync(file, bytes)
  },
  'it goes back in': async () => {
    await d.sql(`CREATE TABLE back (${columns}) ENGINE = MergeTree ORDER BY id`)
    const put = await d.insert('back', fs.readFileSync(file), {}, { format: 'Parquet' })
    equal(put.status, 200, put.text)
    equal(await all('back'), await all('t'), 'rows')
  },
  'files share a batch, and a broken one is refused alone': async () => {
    await d.sql('CREATE TABLE shared (id UInt64, s String) ENGINE = MergeTree ORDER BY id')
    const bodies = await Promise.all([1, 2, 3, 4].map((n) => parquet(`SELECT id, s FROM t WHERE id < ${n}`)))
    bodies[2] = bodies[2].subarray(0, bodies[2].length - 20)
    const answers = await Promise.all(bodies.map((body) => d.insert('shared', body, { async_insert: 1, wait_for_async_insert: 1 }, { format: 'Parquet' })))
    equal(answers.map((a) => a.status), [200, 200, 400, 200], 'answers')
    check(answers[2].text.includes('Code: 117.'), answers[2].text)
    equal(await d.rows('SELECT count() FROM shared'), [[7]], 'rows')
  },
  'no rows are a file as well': async () => {
    const bytes = await parquet('SELECT * FROM t WHERE id > 5000')
    const put = await d.insert('back', bytes, {}, { format: 'Parquet' })
    equal(put.status, 200, put.text)
    equal(await d.rows('SELECT count() FROM back'), [[1000]], 'rows')
  },
  'other readers agree': async () => {
    if (!hasPackage('hyparquet', 'readers')) return console.log(`without other readers: none in ${tools}`)
    readers = ['duckdb', 'hyparquet', ...(hasPackage('chdb', 'readers') ? ['chdb'] : [])]
    const found = await run('node', ['check.mjs', 'compare', '--compact', '--readers', readers.join(','), file], { cwd: path.join(tools, 'readers') })
    const verdict = JSON.parse(found.stdout)
    equal(verdict.verdict, 'exact', found.stdout.slice(0, 2000))
    for (const reader of readers) equal(verdict.readers?.[reader]?.rows ?? verdict[reader]?.rows, 1000, `rows of ${reader}`)
  },
})
