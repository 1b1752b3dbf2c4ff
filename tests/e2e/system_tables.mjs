// The tables of system that operators and their tools ask: the engine's names and types, and what they say is so.
import { Daemon, check, equal, test } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=2'] })
const post = (body, params = {}) => d.request({ path: '/?' + new URLSearchParams(params), body })
const one = async (sql) => (await d.rows(sql))[0]

// As DESCRIBE of the real engine (26.7) has them.
const types = {
  errors: { name: 'String', code: 'Int32', value: 'UInt64', last_error_time: 'DateTime', last_error_message: 'String', query_id: 'String' },
  disks: { name: 'String', path: 'String', free_space: 'UInt64', total_space: 'UInt64', type: 'String', is_read_only: 'UInt8' },
  server_settings: { name: 'String', value: 'String', default: 'String', changed: 'UInt8', type: 'String', is_obsolete: 'UInt8' },
  merge_tree_settings: { name: 'String', value: 'String', default: 'String', min: 'Nullable(String)', readonly: 'UInt8' },
  settings: { name: 'String', value: 'String', changed: 'UInt8', min: 'Nullable(String)', readonly: 'UInt8', alias_for: 'String' },
  metrics: { metric: 'String', value: 'Int64', description: 'String', name: 'String' },
  events: { event: 'String', value: 'UInt64', description: 'String', name: 'String' },
  processes: { query_id: 'String', address: 'IPv6', port: 'UInt16', elapsed: 'Float64', read_rows: 'UInt64', memory_usage: 'Int64',
    Settings: 'Map(LowCardinality(String), LowCardinality(String))' },
  storage_policies: { policy_name: 'String', disks: 'Array(String)' },
  keywords: { keyword: 'String' },
  users: { name: 'String', id: 'UUID', default_roles_all: 'UInt8', host_names: 'Array(String)' },
}

await test(d, {
  'columns have the types of the engine': async () => {
    for (const [table, columns] of Object.entries(types)) {
      const found = Object.fromEntries((await d.rows(`DESCRIBE TABLE system.${table}`)).map((row) => row.slice(0, 2)))
      for (const [name, type] of Object.entries(columns)) equal(found[name], type, `${table}.${name}`)
      await d.sql(`SELECT * FROM system.${table}`)
    }
  },
  'errors are counted by code, with the last one\'s text': async () => {
    await post('SELECT nothing_1')
    await post('SELECT nothing_2')
    const [code, value, text, late] = await one('SELECT code, value, last_error_message, now() - last_error_time < 600 FROM system.errors WHERE name = \'UNKNOWN_IDENTIFIER\'')
    equal([code, Number(value), late], [47, 2, 1], 'counted')
    check(text.includes('nothing_2'), text)
  },
  'query_log says what was asked, what it read, and how it went': async () => {
    await post('SELECT sum(number) FROM numbers(1000)', { query_id: 'good', log_comment: 'nightly', database: 'system' })
    await post('SELECT nothing', { query_id: 'bad' })
    await post('CREATE TABLE logged (a Int32) ORDER BY a', { query_id: 'ddl' })
    const logged = (id) => one('SELECT type, query_kind, read_rows, read_bytes, result_rows, exception_code, current_database, user, log_comment, ' +
      `interface, http_method, toString(address), event_date = toDate(event_time) FROM system.query_log WHERE query_id = '${id}'`)
    equal(await logged('good'), ['QueryFinish', 'Select', 1000, 8000, 1, 0, 'system', 'default', 'nightly', 2, 2, '::ffff:127.0.0.1', 1], 'a SELECT')
    equal((await logged('bad')).slice(0, 6), ['ExceptionBeforeStart', 'Select', 0, 0, 0, 47], 'a bad one')
    equal((await logged('ddl')).slice(0, 2), ['QueryFinish', 'Create'], 'a CREATE')
    for (let i = 0; i < 1100; i++) await d.sql(`SELECT ${i}`)
    equal(await one('SELECT count(), countIf(query_id = \'good\') FROM system.query_log'), [1000, 0], 'the last thousand')
  },
  'the charts of inserts: parts over time, all parts, processor time': async () => {
    await d.sql('CREATE TABLE upclick (a Int32) ORDER BY a')
    for (let i = 0; i < 3; i++) equal((await d.insert('upclick', `{"a":${i}}\n`)).status, 200, 'insert')
    equal(await one("SELECT countIf(active) > 0, count() >= countIf(active), sumIf(rows, active) FROM system.parts WHERE table = 'upclick'"), [1, 1, 3], 'parts')
    const [minutes, parts] = await one('SELECT count(), sum(new_parts) FROM (SELECT toStartOfMinute(event_time) AS minute, count() AS new_parts ' +
      "FROM system.part_log WHERE table = 'upclick' AND event_type = 'NewPart' GROUP BY minute)")
    check(minutes >= 1 && Number(parts) === 3, `new parts a minute: ${minutes}, ${parts}`)
    const [cpu] = await one("SELECT value FROM system.asynchronous_metrics WHERE metric = 'process_cpu_seconds_total'")
    check(cpu > 0 && cpu < 1000, `seconds of CPU: ${cpu}`)
  },
  'functions lists those of columns\' expressions too': async () => {
    const names = (await d.rows('SELECT name FROM system.functions')).map(([name]) => name)
    for (const name of ['count', 'toStartOfMinute', 'hex', 'arrayMap', 'JSONExtractString']) check(names.includes(name), name)
    equal(new Set(names).size, names.length, 'each once')
  },
  'disks say how much room there is': async () => {
    const [path, free, total] = await one('SELECT path, free_space, total_space FROM system.disks')
    equal(path, d.data, 'path')
    check(Number(free) > 0 && Number(free) < Number(total), `${free} of ${total}`)
  },
  'table functions that count': async () => {
    const column = async (sql) => (await d.rows(sql)).map(([value]) => Number(value))
    equal(await column('SELECT * FROM numbers(1, 10, 3)'), [1, 4, 7, 10], 'a step')
    equal(await column('SELECT number FROM numbers(5, 3)'), [5, 6, 7], 'from')
    equal(await column('SELECT generate_series FROM generateSeries(1, 5, 2)'), [1, 3, 5], 'a series')
    equal(await column('SELECT * FROM generate_series(3, 1)'), [], 'none')
    equal(await column('SELECT zero FROM zeros(2)'), [0, 0], 'zeros')
    equal(await column('SELECT zero FROM system.zeros_mt LIMIT 2'), [0, 0], 'endless zeros')
    for (const bad of ['numbers(1, 2, 0)', 'zeros(1, 2)', 'generateSeries(1)', "numbers('a')"])
      equal((await post(`SELECT * FROM ${bad}`)).headers['x-clickhouse-exception-code'], '36', bad)
  },
})
