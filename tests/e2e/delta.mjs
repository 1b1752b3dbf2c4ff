// Tables with publish = 'delta': what Delta readers find in their folders is what SELECT says. ClickHouse reads them by
// delta-kernel, the strict replay with DuckDB and hyparquet file by file.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Daemon, check, equal, hasPackage, run, skip, test, tools, until } from './lib.mjs'

if (!hasPackage('hyparquet', 'readers')) skip(`no readers in ${tools} (script/test installs them)`)
const { replay } = await import(pathToFileURL(path.join(tools, 'readers/delta.mjs')))
const readers = ['duckdb', 'hyparquet', ...(hasPackage('chdb', 'readers') ? ['chdb'] : [])]

const d = await Daemon.start()
const published = "SETTINGS publish = 'delta', publish_interval = 1, publish_checkpoint_interval = 3"
const folder = (table) => path.join(d.data, 'tables/default', table)
const log = (table) => path.join(folder(table), '_delta_log')

// ClickHouse reads Delta tables below its own folder only.
let engine = null
if (hasPackage('chdb')) {
  const { startRefServer } = await import(pathToFileURL(path.join(tools, 'refserver.mjs')))
  engine = await startRefServer({ data: d.dir })
}
process.on('exit', () => { if (engine) try { process.kill(engine.pid, 'SIGKILL') } catch { /* it has ended */ } })

// The newest version once no live part waits for publication.
async function caughtUp(table) {
  await until(async () => {
    const { text } = await d.admin('/metrics')
    const value = (name) => Number(new RegExp(`^${name}\\{table="default.${table}"\\} (.*)$`, 'm').exec(text)?.[1] ?? NaN)
    check(value('sluice_delta_stopped') !== 1, `publication goes on: ${d.log.slice(-2000)}`)
    return value('sluice_delta_version') >= 0 && value('sluice_delta_unpublished_parts') === 0
  }, `${table} to be published`)
  return until(async () => {
    const [[live]] = await d.rows(`SELECT count() FROM system.parts WHERE active AND rows > 0 AND table = '${table}'`)
    const state = await replay(folder(table))
    return state.files.length === live ? state : null
  }, `the log of ${table}`)
}

// Everybody reads the same rows.
async function agree(table, rows) {
  const found = await run('node', ['check.mjs', 'compare', '--compact', '--readers', readers.join(','), folder(table)], { cwd: path.join(tools, 'readers') })
  const verdict = JSON.parse(found.stdout)
  check(['exact', 'lenient'].includes(verdict.verdict), `${table}: ${found.stdout.slice(0, 3000)}`)
  for (const reader of readers) equal(verdict.readers[reader].rows, rows, `rows of ${table} by ${reader}`)
}

// ClickHouse's rows as text, and ours.
async function sameRows(table, columns, order) {
  if (!engine) return
  const format = `ORDER BY ${order} FORMAT JSONCompactEachRow SETTINGS output_format_json_quote_64bit_integers = 0`
  const answer = await fetch(engine.url, { method: 'POST', body: `SELECT ${columns} FROM deltaLakeLocal('${folder(table)}') ${format}` })
  const theirs = await answer.text()
  equal(answer.status, 200, theirs)
  equal(theirs.split('\n'), (await d.sql(`SELECT ${columns} FROM ${table} ${format}`)).split('\n'), `rows of ${table}`)
}

async function put(table, rows, params = {}) {
  const answer = await d.insert(table, rows.map((row) => JSON.stringify(row)).join('\n'), params)
  equal(answer.status, 200, answer.text)
}

function commits(table) {
  return fs.readdirSync(log(table)).filter((name) => /^\d{20}\.json$/.test(name)).sort()
    .map((name) => fs.readFileSync(path.join(log(table), name), 'utf8').trim().split('\n').map((line) => JSON.parse(line)))
}

// What every commit has to be, and how many rows its changes come to.
function checkCommits(table) {
  let rows = 0
  for (const [version, actions] of commits(table).entries()) {
    const kinds = actions.map((action) => Object.keys(action)[0])
    const order = ['commitInfo', 'protocol', 'metaData', 'txn', 'remove', 'add']
    equal(kinds, [...kinds].sort((a, b) => order.indexOf(a) - order.indexOf(b)), `order of actions in version ${version}`)
    equal(kinds[0], 'commitInfo', 'the first action')
    const files = actions.filter((action) => action.add ?? action.remove)
    check(new Set(files.map((action) => (action.add ?? action.remove).dataChange)).size < 2, `version ${version} either changes rows or moves them`)
    for (const { add } of files) {
      if (!add) continue
      const stats = JSON.parse(add.stats)
      equal(Object.keys(stats.minValues), Object.keys(stats.maxValues), 'columns with bounds')
      if (add.dataChange) rows += stats.numRecords
      sizes.set(`${table}/${add.path}`, stats.numRecords)
    }
    for (const { remove } of files) if (remove?.dataChange) rows -= sizes.get(`${table}/${remove.path}`)
  }
  return rows
}
const sizes = new Map()

await test(d, {
  'an empty table': async () => {
    await d.sql(`CREATE TABLE empty (id UInt64, s String) ORDER BY id ${published}`)
    const state = await caughtUp('empty')
    equal([state.version, state.protocol], [0, { minReaderVersion: 1, minWriterVersion: 2 }], 'its log')
    await agree('empty', 0)
  },
  'while inserts and merges run': async () => {
    await d.sql(`CREATE TABLE busy (id Int64, p Int32, s String, f Float64, t DateTime64(6)) PARTITION BY p ORDER BY id ${published}`)
    let next = 0
    let done = false
    const inserts = (async () => {
      while (!done) {
        const from = next
        const rows = Array.from({ length: 5 }, (_, i) => ({ id: from + i, p: (from + i) % 3, s: `row ${from + i}`, f: (from + i) / 7, t: '2025-03-01 00:00:00.123456' }))
        await put('busy', rows)
        next += rows.length
        if (next % 400 === 0) await d.sql('OPTIMIZE TABLE busy FINAL')
      }
    })()
    const { duckRows } = await import(pathToFileURL(path.join(tools, 'readers/readers.mjs')))
    let versions = 0
    for (let last = -1; versions < 8;) {
      const state = await until(async () => {
        const found = fs.existsSync(path.join(log('busy'), '00000000000000000000.json')) ? await replay(folder('busy')) : null
        return found?.version > last ? found : null
      }, 'a version')
      last = state.version
      versions++
      if (state.files.length === 0) continue
      const list = state.files.map((file) => `'${path.join(folder('busy'), file.path)}'`).join(',')
      const [{ n, last_id: id }] = await duckRows(`select count(*)::int as n, max(id)::int as last_id from read_parquet([${list}], hive_partitioning=false)`)
      equal(n, id + 1, `version ${state.version} has all rows up to its last, once`)
      check(n % 5 === 0, 'whole inserts')
      check(n <= next + 5, 'nothing that was not inserted')
    }
    done = true
    await inserts
    await caughtUp('busy')
    await agree('busy', next)
    await sameRows('busy', 'id, p, s, f, t', 'id')
    equal(checkCommits('busy'), next, 'rows that the commits come to')
    check(commits('busy').some((actions) => actions[0].commitInfo.operation === 'OPTIMIZE'), 'a merge was published')
  },
  'a schema that changes': async () => {
    await d.sql(`CREATE TABLE changing (id UInt32, s String) ORDER BY id ${published}`)
    await put('changing', [{ id: 1, s: 'old' }])
    await caughtUp('changing')
    await d.sql("ALTER TABLE changing ADD COLUMN n Nullable(Int64), ADD COLUMN d Int32 DEFAULT 7, ADD COLUMN a Array(String)")
    await put('changing', [{ id: 2, s: 'new', n: 5, d: 8, a: ['x'] }])
    await caughtUp('changing')
    await agree('changing', 2)
    await d.sql('OPTIMIZE TABLE changing FINAL')
    await caughtUp('changing')
    await agree('changing', 2)
    await sameRows('changing', 'id, s, n, d, a', 'id')
  },
  'every type': async () => {
    await d.sql(`CREATE TABLE types (id UInt64, i8 Int8, i16 Int16, i32 Nullable(Int32), i64 Int64, u8 UInt8, u16 UInt16, u32 UInt32, f Float32, g Nullable(Float64), ok Bool,
      s String, lc LowCardinality(Nullable(String)), fs FixedString(3), d Date, d32 Date32, t DateTime, tz DateTime('Europe/Berlin'), t3 DateTime64(3), t6 DateTime64(6), t9 DateTime64(9),
      dec Decimal(9, 2), dec18 Decimal(18, 4), dec38 Decimal(38, 10), dec76 Decimal(76, 20), uuid UUID, e Enum8('a' = 1, 'b' = 2), i128 Int128, u256 UInt256, v4 IPv4, v6 IPv6, bf BFloat16, tm Time, tm6 Time64(6),
      a Array(Nullable(Int32)), aa Array(Array(String)), au Array(UInt64), m Map(String, UInt16), p Tuple(x Int32, y Array(String)), n Nested(k String, v Nullable(Float64)),
      \`name with ; and é\` String) ORDER BY id ${published}`)
    const row = (n) => ({
      id: n % 2 ? '18446744073709551615' : n, i8: -n % 100, i16: -n, i32: n % 3 ? n : null, i64: '-9007199254740993', u8: n % 256, u16: n * 7, u32: 4000000000 + n, f: n / 3, g: n % 5 ? n / 3 : null, ok: n % 2 === 0,
      s: `text ${n} é`.repeat(n % 7), lc: n % 4 ? `kind ${n % 3}` : null, fs: 'abc', d: '2024-01-02', d32: '1950-03-04', t: '2024-01-02 03:04:05', tz: '2024-07-02 03:04:05',
      t3: '2024-01-02 03:04:05.678', t6: '1960-01-02 03:04:05.678901', t9: '2024-01-02 03:04:05.678901234', dec: '12.34', dec18: '-1.5', dec38: `-${n}.0123456789`, dec76: `${n}.00000000000000000001`,
      uuid: '00112233-4455-6677-8899-aabbccddeeff', e: n % 2 ? 'a' : 'b', i128: `-${n}00000000000000000001`, u256: `${n}00000000000000000000000000000000000001`, v4: '1.2.3.4', v6: '2001:db8::1', bf: n / 2, tm: '-12:34:56', tm6: '12:34:56.789',
      a: [n, null, 3], aa: [['x'], [], ['y', `${n}`]].slice(0, n % 4), au: ['18446744073709551615', n], m: { k: n % 100, l: 2 }, p: { x: n, y: ['z'] }, 'n.k': ['a', 'b'], 'n.v': [1.5, null],
      'name with ; and é': `${n}`,
    })
    await put('types', Array.from({ length: 50 }, (_, n) => row(n)))
    await put('types', [{ id: 1000, f: 'nan', g: 'inf' }, { id: 1001, f: '-inf' }])
    await caughtUp('types')
    await agree('types', 52)
    await sameRows('types', 'toString(id), i8, i16, i32, i64, u8, u16, u32, ok, s, lc, toDateTime64(t, 6), d, d32, dec, dec18, uuid, e, toString(i128), v4, a, aa, m', 'id, i8')
    for (const { add } of commits('types').flat()) {
      if (!add) continue
      const { minValues, maxValues } = JSON.parse(add.stats)
      if (maxValues.s !== undefined) check([...maxValues.s].length <= 32, 'long texts are cut')
      if (minValues.t3 !== undefined) check(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(minValues.t3), minValues.t3)
      equal([minValues.ok, minValues.fs, minValues.a], [undefined, undefined, undefined], 'columns without bounds')
    }
  },
  'values of partitions': async () => {
    const odd = ['', ' ', 'a b', '100%', 'a/b', '#?&=', 'é', '%20', '__HIVE_DEFAULT_PARTITION__', '.', '..', 'x'.repeat(300)]
    await d.sql(`CREATE TABLE by_text (id UInt32, k String) PARTITION BY k ORDER BY id ${published}`)
    await put('by_text', odd.map((k, id) => ({ id, k })))
    await d.sql(`CREATE TABLE by_number (id UInt32, k Nullable(Int32)) PARTITION BY k ORDER BY id ${published}, allow_nullable_key = 1`)
    await put('by_number', [null, 0, -1, 2147483647].map((k, id) => ({ id, k })))
    const more = { date: ['Date', ['2025-03-01', '1970-01-01']], time: ['DateTime', ['2025-03-01 01:02:03', '1970-01-01 00:00:00']], bool: ['Bool', [true, false]],
      big: ['UInt64', ['18446744073709551615', 0]], decimal: ['Decimal(9, 2)', ['-1.50', '0']], fine: ['DateTime64(3)', ['2025-03-01 01:02:03.456']] }
    for (const [name, [type, values]] of Object.entries(more)) {
      await d.sql(`CREATE TABLE by_${name} (id UInt32, k ${type}) PARTITION BY k ORDER BY id ${published}`)
      await put(`by_${name}`, values.map((k, id) => ({ id, k })))
    }
    await d.sql(`CREATE TABLE by_month (id UInt32, k Date) PARTITION BY toYYYYMM(k) ORDER BY id ${published}`)
    await put('by_month', [{ id: 0, k: '2025-03-01' }, { id: 1, k: '2025-04-01' }])
    const partitioned = { by_text: [], by_number: ['k'], by_date: ['k'], by_time: ['k'], by_bool: ['k'], by_big: [], by_decimal: ['k'], by_fine: [], by_month: [] }
    for (const [table, columns] of Object.entries(partitioned)) {
      const state = await caughtUp(table)
      equal(state.partitionColumns, columns, `partition columns of ${table}`)
      const [[rows]] = await d.rows(`SELECT count() FROM ${table}`)
      await agree(table, rows)
      await sameRows(table, ['by_time', 'by_fine'].includes(table) ? 'id, toDateTime64(k, 6)' : table === 'by_big' ? 'id, toString(k)' : 'id, k', 'id')
    }
    if (engine) {
      const answer = await fetch(engine.url, { method: 'POST', body: `SELECT id FROM deltaLakeLocal('${folder('by_number')}') WHERE k IS NULL` })
      equal(await answer.text(), '0\n', 'the row without a key')
    }
  },
  'texts that are not UTF-8': async () => {
    const bad = Buffer.from('1\ta\xffb\xfe\xfe\n2\tgood\n', 'latin1')
    const insert = (table) => d.insert(table, bad, {}, { format: 'TSV' })
    await d.sql(`CREATE TABLE replaced (id UInt32, s String) ORDER BY id ${published}`)
    equal((await insert('replaced')).status, 200, 'answer')
    equal(await d.rows('SELECT s FROM replaced ORDER BY id'), [['a\ufffdb\ufffd'], ['good']], 'replaced')
    await d.sql(`CREATE TABLE rejected (id UInt32, s String) ORDER BY id ${published}, invalid_utf8 = 'reject'`)
    const answer = await insert('rejected')
    equal([answer.status, answer.headers['x-clickhouse-exception-code']], [400, '6'], answer.text)
    await put('rejected', [{ id: 3, s: 'é' }])
    equal(await d.rows('SELECT id FROM rejected'), [[3]], 'nothing of it is stored')
    await d.sql(`CREATE TABLE kept (id UInt32, s String, a Array(String)) ORDER BY id ${published}, invalid_utf8 = 'keep'`)
    equal((await d.insert('kept', Buffer.from("1\ta\xffb\t['\xff']\n2\tgood\t['x']\n", 'latin1'), {}, { format: 'TSV' })).status, 200, 'answer')
    equal(await d.rows('SELECT hex(s) FROM kept ORDER BY id'), [['61FF62'], ['676F6F64']], 'kept')
    await put('kept', [{ id: 3, s: 'all good', a: [] }])
    for (const table of ['replaced', 'rejected', 'kept']) {
      await caughtUp(table)
      await agree(table, { replaced: 2, rejected: 1, kept: 3 }[table])
    }
  },
  'removal': async () => {
    await d.sql(`CREATE TABLE shrinking (id UInt32, p UInt8) PARTITION BY p ORDER BY id ${published}`)
    await put('shrinking', Array.from({ length: 30 }, (_, id) => ({ id, p: id % 3 })))
    await caughtUp('shrinking')
    await d.sql('ALTER TABLE shrinking DROP PARTITION 1')
    await caughtUp('shrinking')
    await agree('shrinking', 20)
    await sameRows('shrinking', 'id, p', 'id')
    await d.sql('TRUNCATE TABLE shrinking')
    await caughtUp('shrinking')
    await agree('shrinking', 0)
    equal(checkCommits('shrinking'), 0, 'rows that the commits come to')
  },
  'readers of an older version': async () => {
    const state = await replay(folder('shrinking'), 1n)
    equal(state.files.length, 3, 'its files are there still')
    const found = await run('node', ['check.mjs', 'compare', '--compact', '--version', '1', '--readers', 'duckdb,hyparquet', folder('shrinking')], { cwd: path.join(tools, 'readers') })
    equal(JSON.parse(found.stdout).readers.duckdb.rows, 30, 'its rows')
  },
  'a stop publishes what is left, a kill is made good': async () => {
    await d.sql("CREATE TABLE slow (id UInt32) ORDER BY id SETTINGS publish = 'delta', publish_interval = 100000")
    await caughtUp('slow')
    await put('slow', [{ id: 1 }])
    await d.restart()
    equal((await replay(folder('slow'))).files.length, 1, 'files after the stop')
    await put('slow', [{ id: 2 }])
    await d.kill()
    await d.launch()
    await caughtUp('slow')
    await agree('slow', 2)
  },
  'a foreign commit ends publication': async () => {
    const { version } = await replay(folder('slow'))
    fs.writeFileSync(path.join(log('slow'), `${String(version + 1).padStart(20, '0')}.json`), '{"commitInfo":{"operation":"OPTIMIZE","engineInfo":"other"}}\n')
    await put('slow', [{ id: 3 }])
    await d.restart()
    await until(async () => (await d.metric('sluice_delta_stopped')) === 1, 'the alarm')
    equal(await d.rows('SELECT count() FROM slow'), [[3]], 'the table goes on')
    await d.logged('somebody else wrote')
  },
})
await engine?.stop()
