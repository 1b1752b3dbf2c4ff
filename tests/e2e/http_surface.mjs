// The HTTP surface as clients use it: errors in the asked format, sessions, parameters, KILL, cross-origin, versions.
import fs from 'node:fs'
import net from 'node:net'
import { Daemon, check, equal, test, until } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=2', '--set', 'http.pool=256KiB'] })
const get = (params, options = {}) => d.request({ path: '/?' + new URLSearchParams(params), ...options })
const code = (r) => r.headers['x-clickhouse-exception-code']

function raw(text) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(d.port, '127.0.0.1')
    let got = ''
    socket.on('data', (part) => { got += part })
    socket.on('close', () => resolve(got))
    socket.on('error', reject)
    socket.write(text)
  })
}

await test(d, {
  'an error names the format that was asked for': async () => {
    for (const [query, format, type] of [
      ['SELECT * FROM nope FORMAT JSONEachRow', 'JSONEachRow', 'application/x-ndjson'],
      ['DESCRIBE TABLE nope FORMAT JSON SETTINGS max_threads=1', 'JSON', 'application/json'],
      ['SELECT nope', undefined, 'text/plain'],
      ['SELEC 1 FORMAT JSON', undefined, 'text/plain'],
      ['SELECT 1 FORMAT nope', undefined, 'text/plain'],
    ]) {
      const r = await get({ query })
      check(r.status >= 400 && r.text.startsWith(`Code: ${code(r)}. DB::Exception: `), `${query}: ${r.status} ${r.text}`)
      equal(r.headers['x-clickhouse-format'], format, query)
      equal(r.headers['content-type'].split(';')[0], type, query)
    }
    const written = await get({ query: 'SELECT nope FORMAT JSONEachRow', http_write_exception_in_output_format: 1 })
    check(JSON.parse(written.text).exception.startsWith('Code: 47.'), written.text)
    const document = await get({ query: 'SELECT nope FORMAT JSON', http_write_exception_in_output_format: 1 })
    check(JSON.parse(document.text).exception.startsWith('Code: 47.'), document.text)
  },

  'who has an answer finds the session free, on whichever connection': async () => {
    await Promise.all(Array.from({ length: 8 }, async (_, i) => {
      for (let k = 0; k < 300; k++) equal((await get({ query: 'SELECT 1', session_id: `free${i}` }, { agent: false })).text, '1\n', 'answer')
    }))
  },
  'a session keeps SET, USE and parameters, for its user and time': async () => {
    await d.sql('SET max_block_size = 7, param_x = 5', { session_id: 's' })
    await d.sql('USE system', { session_id: 's' })
    equal(await d.sql("SELECT getSetting('max_block_size'), currentDatabase(), {x:UInt8}", { session_id: 's' }), '7\tsystem\t5\n', 'kept')
    equal(await d.sql("SELECT getSetting('max_block_size')", { session_id: 's', max_block_size: 9 }), '9\n', 'the URL wins')
    equal(await d.sql('SELECT currentDatabase()', { session_id: 's', database: 'default' }), 'default\n', 'the URL wins')
    check(await d.sql("SELECT getSetting('max_block_size')") !== '7\n', 'nothing outside')
    equal(code(await get({ query: 'SELECT 1', session_id: 'new', session_check: 1 })), '372', 'no such session')
    await d.sql('SELECT 1', { session_id: 's', session_check: 1, close_session: 1 })
    equal(code(await get({ query: 'SELECT 1', session_id: 's', session_check: 1 })), '372', 'closed')
    equal(code(await get({ query: 'SELECT 1', session_id: '' })), '744', 'no id')
    equal(code(await get({ query: 'SELECT 1', session_id: 's', session_timeout: 3601 })), '374', 'too long')
    equal(code(await get({ query: 'SET nope = 1', session_id: 's' })), '115', 'unknown setting')
  },

  'an insert sees its session': async () => {
    await d.sql('CREATE DATABASE other')
    await d.sql('CREATE TABLE other.t (a UInt64, s String) ENGINE = MergeTree ORDER BY a')
    await d.sql('USE other', { session_id: 'i' })
    for (let i = 0; i < 3; i++) {
      const r = await get({ query: 'INSERT INTO t FORMAT CSV', session_id: 'i', session_timeout: 10 }, { body: `${i},x\n` })
      equal(r.status, 200, r.text)
    }
    equal(code(await get({ query: 'INSERT INTO t FORMAT CSV', session_timeout: 10 }, { body: '1,x\n' })), '60', 'without it there is no such table')
    equal(await d.sql('SELECT count() FROM other.t'), '3\n', 'rows')
  },

  'parameters fill VALUES': async () => {
    const params = { param_a: 10, param_s: "it's\\t{a:UInt64}", database: 'other' }
    await d.sql('INSERT INTO t VALUES ({a:UInt64}, {s:String})', params)
    equal(await d.sql('SELECT s FROM other.t WHERE a = 10'), "it\\'s\\t{a:UInt64}\n", 'row')
    equal(code(await get({ ...params, param_a: 'ten' }, { body: 'INSERT INTO t VALUES ({a:UInt64}, {s:String})' })), '457', 'no number')
    equal(code(await get({ database: 'other' }, { body: 'INSERT INTO t VALUES ({a:UInt64}, 1)' })), '456', 'not given')
  },

  'a form takes many parameters, and says when they are too many or too much': async () => {
    const part = (name, value) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const form = (query, params) => get({}, { body: part('query', query) + params.join('') + '--B--\r\n',
      headers: { 'Content-Type': 'multipart/form-data; boundary=B' } })
    const many = (n) => Array.from({ length: n }, (_, i) => part(`param_p${i}`, i))
    equal((await form('SELECT {p999:UInt16}', many(1000))).text, '999\n', 'the last of 1000')
    equal(code(await form('SELECT 1', many(1001))), '1000', 'one more')
    const long = [part('param_s', 'x'.repeat(1 << 20))]
    equal((await form(`SELECT length(concat(${Array(15).fill('{s:String}').join()}))`, long)).text, `${15 << 20}\n`, '15 MiB')
    equal(code(await form(`SELECT length(concat(${Array(17).fill('{s:String}').join()}))`, long)), '131', '17 MiB')
  },

  'KILL QUERY ends a statement, and only the one that is meant': async () => {
    const long = 'x'.repeat(200)
    const echoed = await get({ query_id: long }, { body: 'SELECT queryID()' })
    equal([echoed.headers['x-clickhouse-query-id'], echoed.text], [long, `${long}\n`], 'a long id')
    const slow = get({ query_id: 'slow' }, { body: 'SELECT count() FROM numbers(300000000) WHERE number % 7 = 3' })
    await until(async () => (await d.sql("SELECT count() FROM system.processes WHERE query_id = 'slow'")) === '1\n', 'it runs')
    equal(code(await get({ query_id: 'slow' }, { body: 'SELECT 1' })), '216', 'an id runs once')
    equal(await d.sql("KILL QUERY WHERE query_id = 'other'"), '', 'nothing to kill')
    const killed = await d.sql("KILL QUERY WHERE query_id = 'slow' SYNC FORMAT JSONEachRow")
    equal(JSON.parse(killed).kill_status, 'finished', killed)
    equal(code(await slow), '394', 'cancelled')
  },

  'system.processes says who runs what, and how far it is': async () => {
    const slow = get({ query_id: 'seen', database: 'system' }, { body: 'SELECT count() FROM numbers(300000000) WHERE number % 7 = 3' })
    const seen = () => d.rows('SELECT user, toString(address), port > 0, interface, http_method, current_database, read_rows, read_bytes = read_rows * 8 ' +
      "FROM system.processes WHERE query_id = 'seen' AND initial_query_id = query_id AND read_rows > 0")
    let rows
    await until(async () => (rows = await seen()).length > 0, 'rows that it read')
    equal(rows[0].filter((_, i) => i !== 6), ['default', '::ffff:127.0.0.1', 1, 2, 2, 'system', 1], 'who')
    await d.sql("KILL QUERY WHERE query_id = 'seen' SYNC")
    equal(code(await slow), '394', 'cancelled')
  },

  'limit, offset and the session\'s time zone, and what was read': async () => {
    equal((await get({ limit: 2, offset: 3 }, { body: 'SELECT number FROM numbers(10)' })).text, '3\n4\n', 'of the URL')
    equal(await d.sql('SELECT number FROM numbers(5) SETTINGS limit = 1'), '0\n', 'of the clause')
    equal(await d.sql('SELECT number FROM numbers(5) SETTINGS offset = 9'), '', 'behind the end')
    const r = await get({ session_timezone: 'Asia/Tokyo', send_progress_in_http_headers: 1 }, { body: 'SELECT sum(number) FROM numbers(100)' })
    equal(r.headers['x-clickhouse-timezone'], 'Asia/Tokyo', 'zone')
    const { read_rows, read_bytes, total_rows_to_read } = JSON.parse(r.headers['x-clickhouse-progress'])
    equal([read_rows, read_bytes, total_rows_to_read], ['100', '800', '100'], 'progress')
    equal(JSON.parse((await get({}, { body: 'SELECT 1' })).headers['x-clickhouse-summary']).read_rows, '1', 'a SELECT without FROM reads one')
  },

  'an INSERT SELECT keeps its clause while other statements pass': async () => {
    const one = await Daemon.start({ args: ['--set', 'http.threads=1', '--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=2'] })
    await one.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    const insert = () => one.request({ body: "INSERT INTO t SETTINGS insert_deduplication_token = 'its own token, which is long enough to be missed' " +
      'SELECT count() FROM numbers(300000) WHERE number % 7 = 3' })
    const first = insert()
    await until(async () => (await one.sql("SELECT count() FROM system.processes WHERE query LIKE 'SELECT count() FROM numbers%'")) === '1\n', 'it runs')
    for (let i = 0; i < 5; i++) await one.request({ body: `INSERT INTO t SETTINGS insert_deduplication_token = 'another token that is just about as long ${i}' FORMAT CSV\n${i}\n` })
    equal((await first).status, 200, 'the long one')
    equal((await insert()).headers['x-sluice-duplicate'], '1', 'again, under the same token')
    for (const rest of ['SELECT 900001', 'VALUES (900002)', 'SELECT 900003', 'FORMAT CSV\n900004\n', 'SELECT 900005', '(id) VALUES (900006)'])
      await one.sql(`INSERT INTO t ${rest}`)
    equal(await one.sql('SELECT arraySort(groupArray(id - 900000)) FROM t WHERE id > 900000'), '[1,2,3,4,5,6]\n', 'what begins alike is not the same')
    await one.close()
  },

  'statements in bodies are remembered within bounds': async () => {
    const resident = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${d.child.pid}/status`, 'utf8'))[1]) / 1024
    await d.sql('CREATE TABLE kept (id UInt64) ENGINE = MergeTree ORDER BY id')
    const before = resident()
    for (let i = 0; i < 500; i++)
      await d.sql(`INSERT INTO kept SETTINGS format_custom_row_before_delimiter = '${'x'.repeat(200000)}' FORMAT CSV\n${i}\n`, { max_threads: i, wait_for_async_insert: 0 })
    const grown = resident() - before
    check(grown < 400, `500 statements of 200 KB: ${grown} MiB`)
  },

  'other origins may read what they have to': async () => {
    const r = await get({ query: 'SELECT 1', add_http_cors_header: 1 }, { headers: { Origin: 'http://a' } })
    equal(r.headers['access-control-allow-origin'], '*', 'origin')
    check(r.headers['access-control-expose-headers'].includes('X-ClickHouse-Summary'), 'exposed')
    const inserted = await get({ query: 'INSERT INTO other.t FORMAT CSV', add_http_cors_header: 1 }, { body: '77,x\n', headers: { Origin: 'http://a' } })
    equal([inserted.status, inserted.headers['access-control-allow-origin']], [200, '*'], 'an insert')
    equal((await d.request({ method: 'OPTIONS' })).status, 204, 'OPTIONS')
    equal((await d.request({ method: 'OPTIONS', path: '/ping' })).status, 501, 'elsewhere')
  },

  'connections live as long as was asked': async () => {
    const old = await raw('GET /?query=SELECT+1 HTTP/1.0\r\n\r\n')
    check(old.startsWith('HTTP/1.0 200') && !/^transfer-encoding/im.test(old) && !/^keep-alive/im.test(old), old)
    const kept = await d.request({ method: 'GET', path: '/ping' })
    equal([kept.headers.connection, kept.headers['keep-alive']], ['Keep-Alive', 'timeout=30, max=9999'], 'kept')
    const close = await raw('GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    check(/^connection: close/im.test(close) && !/^keep-alive/im.test(close), close)
    const both = await raw('GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /ping HTTP/1.0\r\n\r\n')
    equal(both.match(/HTTP\/1\.0 200/g)?.length, 2, both)
  },

  'with room for them, long URLs and many parameters pass': async () => {
    const columns = Array.from({ length: 900 }, (_, i) => `a_column_with_a_long_name_that_makes_a_long_address_${i}`)
    await d.sql(`CREATE TABLE wide (${columns.map((c) => `${c} UInt8`).join(', ')}) ENGINE = MergeTree ORDER BY ${columns[0]}`)
    const r = await get({ query: `INSERT INTO wide (${columns.join(', ')}) FORMAT CSV` }, { body: columns.map(() => 1).join(',') + '\n' })
    equal([r.status, r.text], [200, ''], 'a column list of 45 KB')
    equal((await get({ query: `SELECT 1 /*${'x'.repeat(65000)}*/` })).text, '1\n', 'a URL of 64 KB')
    const many = Object.fromEntries(Array.from({ length: 990 }, (_, i) => [`param_p${i}`, i]))
    equal((await get({ query: 'SELECT {p989:UInt16}', ...many })).text, '989\n', 'parameters')
    equal(code(await get({ query: 'SELECT 1', ...many, ...Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`param_q${i}`, i])) })), '1000', 'too many')
  },

  'a head that is too long is refused, and the log says which setting to change': async () => {
    const one = await Daemon.start()
    for (const [status, target, headers] of [[414, `/?query=SELECT+1/*${'x'.repeat(65000)}*/`, {}], [431, '/ping', { 'X-Long': 'x'.repeat(65000) }]])
      equal((await one.request({ method: 'GET', path: target, headers, agent: false })).status, status, target.slice(0, 20))
    await one.logged('URL or headers are too long: listener=data setting=http.pool value=32768', 2)
    await one.close()
  },

  'a GET of what is no statement is a syntax error': async () => {
    equal(code(await get({ query: 'SELEC 1' }, { method: 'GET' })), '62', 'no statement')
    for (const query of ['DROP TABLE t', 'SYSTEM RELOAD CONFIG', 'KILL QUERY WHERE 1'])
      equal(code(await get({ query }, { method: 'GET' })), '164', query)
  },

  'settings without a meaning here are checked all the same': async () => {
    for (const [setting, want] of [['join_use_nulls=2', '467'], ['max_threads=many', '27'], ['max_rows_to_read=-1', '72'],
      ['max_threads=', '32'], ['totals_auto_threshold=x', '72'], ['nope=1', '115'], ['max_threads=auto', undefined]])
      equal(code(await d.request({ path: `/?${setting}`, body: 'SELECT 1' })), want, setting)
  },
})
