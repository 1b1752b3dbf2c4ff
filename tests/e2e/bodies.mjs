// Bodies: codings, bombs, truncation, sizes; statements split between URL and body; what is refused stores nothing.
import net from 'node:net'
import zlib from 'node:zlib'
import { Daemon, check, equal, test, until } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'http.decoded_max=32MiB', '--set', 'http.body_max=16MiB', '--set', 'async_insert_busy_timeout_min_ms=1',
  '--set', 'async_insert_busy_timeout_max_ms=5'] })
const count = async (where = '1') => Number(await d.sql(`SELECT count() FROM t WHERE ${where}`))
const codeOf = (a) => Number(/^Code: (\d+)\./.exec(a.text)?.[1] ?? 0)
const csv = 'INSERT INTO t FORMAT CSV'
const send = (query, body, headers = {}, params = {}) => d.request({ path: '/?' + new URLSearchParams({ ...(query ? { query } : {}), ...params }), body, headers })

await test(d, {
  'a table': () => d.sql('CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id'),
  'codings are undone': async () => {
    for (const [coding, encode] of [['gzip', zlib.gzipSync], ['deflate', zlib.deflateSync], ['GZIP', zlib.gzipSync]])
      equal((await send(csv, encode('1,a\n'), { 'Content-Encoding': coding })).status, 200, coding)
    const hex = { snappy: 'ff060000734e6150705901080000408c2ce7310a320a',
      xz: 'fd377a585a000004e6d6b446020021011c00000010cf58cc010003310a320a0066967033c5bab0e300011c046f2c9cc11fb6f37d010000000004595a' }
    for (const [coding, text] of Object.entries(hex)) {
      const a = await send('INSERT INTO t (id) FORMAT CSV', Buffer.from(text, 'hex'), { 'Content-Encoding': coding })
      equal([a.status, JSON.parse(a.headers['x-clickhouse-summary']).written_rows], [200, '2'], coding + a.text)
    }
    const members = Buffer.concat([zlib.gzipSync('2,b\n'), zlib.gzipSync('3,c\n')])
    equal((await send(csv, members, { 'Content-Encoding': 'gzip' })).status, 200, 'two members')
    equal(await count(), 9, 'rows')
  },
  'a bomb, a cut stream, bytes after the end, an unknown coding are refused whole': async () => {
    const before = await count()
    const bomb = zlib.gzipSync(Buffer.alloc(64 << 20, '1'))
    const bombs = await Promise.all(Array.from({ length: 8 }, () => send(csv, bomb, { 'Content-Encoding': 'gzip' })))
    for (const a of bombs) equal([a.status, codeOf(a)], [413, 229], 'bomb')
    const whole = zlib.gzipSync('1,a\n2,b\n3,c\n')
    for (const cut of [1, 5, 9, whole.length - 9, whole.length - 1])
      equal(codeOf(await send(csv, whole.subarray(0, cut), { 'Content-Encoding': 'gzip' })), 354, `cut at ${cut}`)
    equal(codeOf(await send(csv, Buffer.concat([whole, Buffer.from('x')]), { 'Content-Encoding': 'gzip' })), 354, 'a byte after the end')
    for (const coding of ['identity', 'x-gzip', 'gzip, br', 'nope']) {
      const b = await send(csv, '1,a\n', { 'Content-Encoding': coding })
      equal([b.status, codeOf(b)], [501, 48], coding)
    }
    equal(await count(), before, 'rows')
  },
  'too large a body is 413, and nothing of it stays': async () => {
    const text = await new Promise((resolve, reject) => { // the refusal comes before the body, and ends the connection
      const socket = net.connect(d.port, '127.0.0.1', () => socket.write(`POST /?query=${encodeURIComponent(csv)} HTTP/1.1\r\nHost: h\r\n` +
        `Content-Length: ${17 << 20}\r\n\r\n1,`))
      let got = ''
      socket.on('data', (data) => { got += data }).on('end', () => resolve(got)).on('error', reject)
    })
    check(text.startsWith('HTTP/1.1 413') && text.includes('Code: 229.'), text)
    const long = Buffer.alloc(20 << 20, '1')
    for (const a of await Promise.all(Array.from({ length: 8 }, () => send(csv, long)))) equal([a.status, codeOf(a)], [413, 229], 'who is still sending sees why')
    const b = await send(csv, Buffer.from('1,' + 'x'.repeat(9 << 20) + '\n'))
    equal(b.status, 200, b.text)
    equal(await count('length(s) = 9437184'), 1, 'the row that fits')
    await until(async () => await d.metric('sluice_memory_bytes') === 0, 'no bytes to be reserved afterwards')
  },
  'what memory.max leaves to bodies is a limit of its own: a body that fits is taken, one that never will is 413': async () => {
    const tight = await Daemon.start({ args: ['--set', 'memory.max=64MiB'] })
    await tight.sql('CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id')
    const row = (mib) => Buffer.from('1,' + 'x'.repeat(mib << 20) + '\n')
    equal((await tight.insert('t', row(10), {}, { format: 'CSV' })).status, 200, '10 MiB')
    for (const [what, body, headers] of [['as it is', row(17), {}], ['decoded', zlib.gzipSync(row(17), { level: 0 }), { 'Content-Encoding': 'gzip' }]]) {
      const a = await tight.insert('t', body, {}, { format: 'CSV', headers })
      equal([a.status, codeOf(a)], [413, 229], `${what}: ${a.text}`)
    }
    equal(await tight.sql('SELECT sum(length(s)) FROM t'), `${10 << 20}\n`, 'what is stored')
    await tight.close()
  },
  'an insert larger than a buffer goes at once': async () => {
    const rows = Array.from({ length: 20000 }, (_, i) => `${i + 1000000},${'y'.repeat(600)}`).join('\n')
    equal((await send(csv, rows)).status, 200, 'status')
    equal(await count('id >= 1000000'), 20000, 'rows')
  },
  'the statement may stand in the URL, in the body, or in both': async () => {
    const at = 2000000
    const cases = [
      [csv, `${at},x\n`], ['', `${csv}\n${at},x\n`], ['INSERT INTO t', `FORMAT CSV\n${at},x\n`], ['', `insert  into\tt /* c */ format csv   \n${at},x\n`],
      ['INSERT INTO t VALUES', `(${at}, 'x')`], ['', `INSERT INTO t VALUES (${at}, 'x')`], [`INSERT INTO t VALUES (${at}, 'x')`, ''],
      ['INSERT INTO t (id) FORMAT JSONEachRow', `{"id":${at}}`], ['INSERT INTO TABLE default.`t` FORMAT TSV', `${at}\tx`],
    ]
    for (let round = 0; round < 2; round++) // the second time from the cache
      for (const [query, body] of cases) {
        const a = await send(query, body)
        equal(a.status, 200, `${query} | ${body}: ${a.text}`)
        equal(JSON.parse(a.headers['x-clickhouse-summary']).written_rows, '1', `${query} | ${body}`)
      }
    equal(await count(`id = ${at}`), cases.length * 2, 'rows')
  },
  'an empty insert is fine, an empty statement is not': async () => {
    const a = await send(csv, '')
    equal([a.status, a.headers['x-sluice-ack']], [200, 'stored'], a.text)
    equal(codeOf(await send('', '')), 62, 'empty')
    equal(codeOf(await send('', ' ; -- nothing')), 62, 'empty, with a comment')
  },
  'what an insert names is checked before its data': async () => {
    for (const [query, params, code, status] of [
      ['INSERT INTO nope FORMAT CSV', {}, 60, 404], ['INSERT INTO nope.t FORMAT CSV', {}, 81, 404], ['INSERT INTO t FORMAT Nope', {}, 73, 404],
      ['INSERT INTO t (nope) FORMAT CSV', {}, 16, 500], ['INSERT INTO t (id, id) FORMAT CSV', {}, 15, 400], ['INSERT t FORMAT CSV', {}, 62, 400],
      [csv, { database: 'nope' }, 81, 404], [csv, { asinc_insert: 1 }, 115, 404], [csv, { async_insert: 2 }, 467, 500], [csv, { sluice_ack: 'maybe' }, 36, 400],
      [csv, { max_insert_block_size: 0 }, 36, 400], [csv, { user: 'eve' }, 516, 403], [csv, { role: 'x' }, 511, 404]]) {
      const a = await send(query, '1,a\n', {}, { wait_for_async_insert: 0, ...params })
      equal([codeOf(a), a.status], [code, status], `${query} ${JSON.stringify(params)}: ${a.text}`)
      equal(a.headers['x-clickhouse-exception-code'], String(code), query)
    }
    const order = await send('INSERT INTO nope FORMAT CSV', '1,a\n', {}, { asinc_insert: 1, database: 'nope', user: 'eve' })
    equal(codeOf(order), 516, 'the user comes first')
  },
  'a table that comes, goes and changes is seen at once by a repeated statement': async () => {
    const query = 'INSERT INTO u FORMAT JSONEachRow'
    equal(codeOf(await send(query, '{"id":1}')), 60, 'not yet')
    await d.sql('CREATE TABLE u (id UInt64) ENGINE = MergeTree ORDER BY id')
    equal((await send(query, '{"id":1}')).status, 200, 'created')
    await d.sql('ALTER TABLE u ADD COLUMN n UInt8')
    equal((await send(query, '{"id":2,"n":3}')).status, 200, 'altered')
    equal(await d.rows('SELECT id, n FROM u ORDER BY id'), [[1, 0], [2, 3]], 'rows')
    await d.sql('DROP TABLE u')
    equal(codeOf(await send(query, '{"id":1}')), 60, 'dropped')
  },
  'a token is told by URL, header or clause, and stores once': async () => {
    const q = 'INSERT INTO t FORMAT JSONEachRow'
    const row = (id) => `{"id":${id}}`
    const id = 3000000
    for (let i = 0; i < 3; i++) {
      const a = await send(q, row(id), {}, { insert_deduplication_token: 'k1' })
      equal([a.status, a.headers['x-sluice-duplicate']], [200, i ? '1' : undefined], 'URL')
      const b = await send(q, row(id + 1), { 'Idempotency-Key': 'k2' })
      equal([b.status, b.headers['x-sluice-duplicate']], [200, i ? '1' : undefined], 'header')
      const c = await send(`INSERT INTO t SETTINGS insert_deduplication_token = 'k3' FORMAT JSONEachRow`, row(id + 2))
      equal([c.status, c.headers['x-sluice-duplicate']], [200, i ? '1' : undefined], 'clause')
    }
    equal(await count(`id >= ${id} AND id < ${id + 10}`), 3, 'rows')
  },
  'small bodies with many rows share a batch within bounds': async () => {
    const small = await Daemon.start({ args: ['--set', 'memory.max=64MiB', '--set', 'async_insert_busy_timeout_min_ms=1000',
      '--set', 'async_insert_busy_timeout_max_ms=1000', '--set', 'async_insert_use_adaptive_busy_timeout=false'] })
    await small.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    const rows = 1000000
    const { bytes } = await small.request({ body: `SELECT toUInt64(1) AS id FROM numbers(${rows}) FORMAT Parquet` })
    check(bytes.length < 100000, `${bytes.length} bytes`)
    const insert = () => small.request({ path: '/?query=INSERT+INTO+t+FORMAT+Parquet', body: bytes })
    const answers = await Promise.all(Array.from({ length: 8 }, insert))
    const refused = answers.filter((a) => a.status !== 200)
    check(refused.length > 0 && refused.length < 8, `${refused.length} were refused`)
    for (const a of refused) equal([a.status, codeOf(a)], [503, 241], a.text)
    equal(await small.sql('SELECT count() FROM t'), `${(8 - refused.length) * rows}\n`, 'rows')
    equal((await insert()).status, 200, 'one that comes again')
    await small.close()
  },
  'GET cannot change anything': async () => {
    for (const query of [`INSERT INTO t VALUES (1, 'a')`, 'DROP TABLE t', 'SYSTEM FLUSH ASYNC INSERT QUEUE', 'CREATE TABLE x (a UInt8) ENGINE = MergeTree ORDER BY a']) {
      const a = await d.request({ method: 'GET', path: '/?' + new URLSearchParams({ query }) })
      equal([a.status, codeOf(a)], [500, 164], `${query}: ${a.text}`)
    }
  },
  'answers are compressed as asked': async () => {
    for (const [accept, want] of [['gzip', 'gzip'], ['deflate', 'deflate'], ['gzip, zstd', 'zstd'], ['br', 'br'], ['xz', 'xz'], ['gzip, xz', 'gzip'],
      ['gzip, snappy', 'snappy'], ['compress', undefined], ['gzip;q=0', undefined]]) {
      const a = await d.request({ path: '/', body: 'SELECT number FROM numbers(100)', headers: { 'Accept-Encoding': accept } })
      equal(a.headers['content-encoding'], want, accept)
      if (want === 'br') check(zlib.brotliDecompressSync(a.bytes).toString().startsWith('0\n1\n'), 'br')
      if (want === 'gzip') check(zlib.gunzipSync(a.bytes).toString().startsWith('0\n1\n'), 'gunzip')
    }
    const insert = await send(csv, '1,a\n', { 'Accept-Encoding': 'gzip' })
    equal(insert.headers['content-encoding'], undefined, 'an empty body has none')
    const refused = await d.request({ path: '/?user=eve', body: 'SELECT 1', headers: { 'Accept-Encoding': 'gzip' } })
    equal(refused.headers['content-encoding'], undefined, 'nor has a refused user')
  },
})
