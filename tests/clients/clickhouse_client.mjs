// @clickhouse/client, the official one for node, against the daemon: every kind of call it has.
import { createRequire } from 'node:module'
import fs from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import zlib from 'node:zlib'
import { Daemon, check, equal, root, skip, test } from '../e2e/lib.mjs'

const installed = path.resolve(process.env.SLUICE_CLIENTS_DIR ?? path.join(root, 'build/clients'))
if (!fs.existsSync(path.join(installed, 'node_modules/@clickhouse/client/package.json'))) skip(`no @clickhouse/client in ${installed}: script/test fetches it`)
const { createClient, ClickHouseLogLevel } = createRequire(path.join(installed, 'package.json'))('@clickhouse/client')

const d = await Daemon.start()
const make = (options = {}) => createClient({ url: d.url, log: { level: ClickHouseLogLevel.OFF }, ...options })
const client = make()
const json = async (query, options = {}) => (await client.query({ query, format: 'JSONEachRow', ...options })).json()
const fails = async (promise) => {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('not so: an error was expected')
}
const text = async (stream) => {
  const parts = []
  for await (const part of stream) parts.push(part)
  return Buffer.concat(parts).toString()
}

const rows = [{ id: '1', s: 'a', tags: ['x'] }, { id: '2', s: 'б"\n', tags: [] }]
const lines = { csv: '1,a,"[\'x\']"\n2,"б""\n","[]"\n', tsv: "1\ta\t['x']\n2\tб\"\\n\t[]\n" }
const compact = rows.map((row) => [row.id, row.s, row.tags])
const names = ['id', 's', 'tags']
const types = ['UInt64', 'String', 'Array(String)']
const inserts = {
  JSONEachRow: rows,
  JSONStringsEachRow: rows.map((row) => ({ ...row, tags: `['${row.tags.join("','")}']`.replace("['']", '[]') })),
  JSONCompactEachRow: compact,
  JSONCompactEachRowWithNames: [names, ...compact],
  JSONCompactEachRowWithNamesAndTypes: [names, types, ...compact],
  CSV: Readable.from([lines.csv], { objectMode: false }),
  CSVWithNames: Readable.from(['id,s,tags\n', lines.csv], { objectMode: false }),
  CSVWithNamesAndTypes: Readable.from(['id,s,tags\n"UInt64","String","Array(String)"\n', lines.csv], { objectMode: false }),
  TabSeparated: Readable.from([lines.tsv], { objectMode: false }),
  TabSeparatedWithNames: Readable.from(['id\ts\ttags\n', lines.tsv], { objectMode: false }),
  TabSeparatedWithNamesAndTypes: Readable.from(['id\ts\ttags\nUInt64\tString\tArray(String)\n', lines.tsv], { objectMode: false }),
}

await test(d, {
  ping: async () => {
    equal((await client.ping()).success, true, 'ping')
    equal((await client.ping({ select: true })).success, true, 'ping by SELECT')
    const nobody = make({ url: 'http://127.0.0.1:1' })
    equal((await nobody.ping()).success, false, 'ping of nobody')
    await nobody.close()
  },

  'command and its answer': async () => {
    const made = await client.command({ query: 'CREATE TABLE t (id UInt64, s String, tags Array(String)) ENGINE = MergeTree ORDER BY id', clickhouse_settings: { wait_end_of_query: 1 } })
    check(/^[0-9a-f-]{36}$/.test(made.query_id), 'query id')
    await client.command({ query: 'CREATE TABLE {t:Identifier} (id UInt64) ENGINE = MergeTree ORDER BY id', query_params: { t: 'made' } })
    await client.command({ query: 'DROP TABLE made' })
  },

  'insert, in every format': async () => {
    for (const [format, values] of Object.entries(inserts)) {
      const result = await client.insert({ table: 't', values, format, query_id: `insert-${format}` })
      equal(result.query_id, `insert-${format}`, format)
      equal(result.summary?.written_rows, '2', `${format}: written rows`)
      equal(await json('SELECT * FROM t ORDER BY id'), rows.map((row) => ({ ...row, id: Number(row.id) })), format)
      await client.command({ query: 'TRUNCATE TABLE t' })
    }
  },

  'insert of some columns': async () => {
    await client.insert({ table: 't', values: [{ id: 1 }], format: 'JSONEachRow', columns: ['id'] })
    await client.insert({ table: 't', values: [{ id: 2, s: 'x' }], format: 'JSONEachRow', columns: { except: ['tags'] } })
    equal(await json('SELECT id, s FROM t ORDER BY id'), [{ id: 1, s: '' }, { id: 2, s: 'x' }], 'rows')
    equal((await client.insert({ table: 't', values: [], format: 'JSONEachRow' })).executed, false, 'nothing to insert')
    await client.command({ query: 'TRUNCATE TABLE t' })
  },

  'insert of a stream of objects, compressed': async () => {
    const squeezed = make({ compression: { request: true, response: true } })
    async function* many() {
      for (let i = 0; i < 5000; i++) yield { id: i, s: `row ${i}`, tags: ['a', 'b'] }
    }
    const result = await squeezed.insert({ table: 't', values: Readable.from(many()), format: 'JSONEachRow' })
    equal(result.summary.written_rows, '5000', 'written rows')
    const set = await squeezed.query({ query: 'SELECT count() AS n, sum(id) AS sum FROM t', format: 'JSON' })
    equal((await set.json()).data, [{ n: 5000, sum: 12497500 }], 'sum')
    await squeezed.close()
  },

  'query as a stream, row by row': async () => {
    const set = await client.query({ query: 'SELECT id FROM t ORDER BY id', format: 'JSONEachRow' })
    let next = 0
    for await (const part of set.stream()) for (const row of part) equal(row.json().id, next++, 'row')
    equal(next, 5000, 'rows')
    const csv = await client.query({ query: 'SELECT id, s FROM t ORDER BY id LIMIT 2', format: 'CSV' })
    equal(await csv.text(), '0,"row 0"\n1,"row 1"\n', 'CSV')
  },

  'query with parameters of every kind': async () => {
    const given = { n: 42, s: "it's\t\\", list: ['a', "b'"], nothing: null, yes: true, map: { k: 1 }, tuple: [1, 2] }
    const [row] = await json('SELECT {n:UInt8} AS n, {s:String} AS s, {list:Array(String)} AS list, {nothing:Nullable(String)} AS nothing, {yes:Bool} AS yes, {map:Map(String, UInt8)} AS map, {tuple:Array(UInt8)} AS tuple', { query_params: given })
    equal(row, given, 'parameters')
    await client.command({ query: 'INSERT INTO t (id, s) VALUES ({id:UInt64}, {s:String})', query_params: { id: 9001, s: "it's" } })
    equal(await json('SELECT s FROM t WHERE id = {id:UInt64}', { query_params: { id: 9001 } }), [{ s: "it's" }], 'inserted')
  },

  'exec, with a stream out and a stream in': async () => {
    const out = await client.exec({ query: 'SELECT 1, 2 FORMAT CSV' })
    equal(await text(out.stream), '1,2\n', 'answer')
    const into = await client.exec({ query: 'INSERT INTO t (id, s) FORMAT CSV', values: Readable.from(['9002,x\n', '9003,y\n'], { objectMode: false }) })
    await text(into.stream)
    equal(await json('SELECT count() AS n FROM t WHERE id > 9001'), [{ n: 2 }], 'rows')
    const raw = await client.exec({ query: 'INSERT INTO t (id, s) FORMAT CSV', values: Readable.from([zlib.gzipSync('9004,z\n')], { objectMode: false }), http_headers: { 'Content-Encoding': 'gzip' } })
    await text(raw.stream)
    equal(await json('SELECT s FROM t WHERE id = 9004'), [{ s: 'z' }], 'a body with a coding of its own')
  },

  'async inserts': async () => {
    const settings = { async_insert: 1, wait_for_async_insert: 0 }
    const result = await client.insert({ table: 't', values: [{ id: 9100, s: 'later' }], format: 'JSONEachRow', clickhouse_settings: settings })
    equal(result.summary.written_rows, '0', 'nothing is known of it yet')
    await client.command({ query: 'SYSTEM FLUSH ASYNC INSERT QUEUE' })
    equal(await json('SELECT s FROM t WHERE id = 9100'), [{ s: 'later' }], 'row')
    await Promise.all(Array.from({ length: 50 }, (_, i) => client.insert({ table: 't', values: [{ id: 9200 + i }], format: 'JSONEachRow', clickhouse_settings: { ...settings, wait_for_async_insert: 1 } })))
    equal(await json('SELECT uniqExact(id) AS n FROM t WHERE id >= 9200'), [{ n: 50 }], 'rows')
  },

  sessions: async () => {
    const one = make({ session_id: 'one' })
    await one.command({ query: 'SET max_block_size = 11' })
    const seen = async (who) => (await (await who.query({ query: "SELECT getSetting('max_block_size') AS v", format: 'JSONEachRow' })).json())[0].v
    equal(await seen(one), 11, 'kept')
    check((await seen(client)) !== 11, 'not for others')
    await one.close()
  },

  'errors are told with their code and type': async () => {
    const error = await fails(client.query({ query: 'SELECT * FROM no_such_table', format: 'JSONEachRow' }))
    equal([error.code, error.type], ['60', 'UNKNOWN_TABLE'], 'query')
    const bad = await fails(client.insert({ table: 't', values: [{ id: 'seven' }], format: 'JSONEachRow' }))
    equal([bad.code, bad.type], ['27', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED'], 'insert')
    const setting = await fails(client.command({ query: 'SELECT 1', clickhouse_settings: { no_such_setting: 1 } }))
    equal([setting.code, setting.type], ['115', 'UNKNOWN_SETTING'], 'setting')
    const stranger = make({ username: 'stranger', password: 'x' })
    equal((await fails(stranger.query({ query: 'SELECT 1' }))).code, '516', 'user')
    await stranger.close()
    const elsewhere = make({ database: 'no_such_database' })
    equal((await fails(elsewhere.query({ query: 'SELECT 1' }))).code, '81', 'database')
    await elsewhere.close()
  },

  'a query that is given up ends on the server': async () => {
    const controller = new AbortController()
    const slow = client.query({ query: 'SELECT count() FROM numbers(3000000000) WHERE number % 7 = 3', query_id: 'slow', abort_signal: controller.signal })
    const running = async () => (await json("SELECT count() AS n FROM system.processes WHERE query_id = 'slow'"))[0].n
    while ((await running()) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    controller.abort()
    await fails(slow)
    while ((await running()) === 1) await new Promise((resolve) => setTimeout(resolve, 5))
    equal((await client.ping()).success, true, 'the client goes on')
  },

  'connections are kept, or not': async () => {
    const accepted = await d.metric('sluice_http_connections_accepted_total')
    const kept = make({ keep_alive: { enabled: true }, max_open_connections: 1 })
    for (let i = 0; i < 10; i++) await kept.insert({ table: 't', values: [{ id: 9300 + i }], format: 'JSONEachRow' })
    await kept.close()
    const after = await d.metric('sluice_http_connections_accepted_total')
    check(after - accepted <= 4, `one connection, and those of the scrapes: ${after - accepted}`)
    const single = make({ keep_alive: { enabled: false } })
    for (let i = 0; i < 3; i++) equal((await single.ping()).success, true, 'ping')
    await single.close()
    await client.close()
  },
})
