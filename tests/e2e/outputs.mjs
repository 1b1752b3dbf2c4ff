// What SELECT prints, against the ClickHouse engine on the same rows: text formats byte for byte; binary formats and those
// with names and types are files that the engine reads, giving the rows it has itself. DuckDB reads the Parquet too.
// Needs what script/test --oracle installs; skipped without.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Daemon, check, equal, hasPackage, parallel, run, skip, test, tools } from './lib.mjs'

if (!hasPackage('chdb')) skip(`no ClickHouse engine in ${tools} (script/test --oracle installs it)`)
const { startRefServer } = await import(pathToFileURL(path.join(tools, 'refserver.mjs')))

const columns = {
  id: 'UInt32', u8: 'UInt8', u16: 'UInt16', u64: 'UInt64', u128: 'UInt128', u256: 'UInt256', i8: 'Int8', i16: 'Int16',
  i32: 'Int32', i64: 'Int64', i128: 'Int128', i256: 'Int256', f32: 'Float32', f64: 'Float64', b: 'Bool', s: 'String',
  fs: 'FixedString(5)', d: 'Date', d32: 'Date32', dt: 'DateTime', dtz: "DateTime('Asia/Tokyo')", d64: 'DateTime64(3)',
  d640: 'DateTime64(0)', d649: "DateTime64(9, 'America/New_York')", dec9: 'Decimal(9, 2)', dec18: 'Decimal(18, 6)',
  dec38: 'Decimal(38, 10)', dec76: 'Decimal(76, 20)', e8: "Enum8('a' = 1, 'b\\'\"\\t<' = 2)", e16: "Enum16('x' = -1000, 'y' = 1000)",
  u: 'UUID', ip4: 'IPv4', ip6: 'IPv6', ns: 'Nullable(String)', nf: 'Nullable(Float64)', ni: 'Nullable(Int64)',
  nd: 'Nullable(DateTime64(3))', lc: 'LowCardinality(String)', lcn: 'LowCardinality(Nullable(String))', a: 'Array(Int32)',
  'as': 'Array(String)', aan: 'Array(Array(Nullable(Float64)))', m: 'Map(String, UInt64)', mm: 'Map(UInt16, Array(String))',
  t: 'Tuple(Int8, String)', tn: 'Tuple(x Float32, `y z` Array(Tuple(p Date, q Bool)))', ad: 'Array(DateTime64(6))',
  al: 'Array(LowCardinality(String))', ae: "Array(Enum8('p' = 1, 'q' = 2))",
}
const structure = Object.entries(columns).map(([name, type]) => `\`${name}\` ${type}`).join(', ')
// Strings and numbers at the edges of what the formats escape; the other columns take their defaults.
const edges = [
  String.raw`s = '', f64 = nan, f32 = -inf, nf = inf, ns = 'NULL', a = [-1], as = ['', '\'', '"', '\\']`,
  String.raw`s = '\0\b\t\n\f\r\x1b\x7f\\\'"/<>&,;|*_', fs = '\0a\0', ns = '\\N', m = map('k"\'', 1, '', 2)`,
  String.raw`s = '\xff\xfe\xc3(', ns = 'ᴺᵁᴸᴸ', lc = '\xe2\x28', as = ['\xff', 'é', '日本', '😀']`,
  String.raw`s = 'é日本😀\u2028\u2029', f64 = -0.0, f32 = 1e-45, nf = 1.7976931348623157e308, lcn = 'é'`,
  String.raw`s = 'a very long text that is more than a terminal holds, ' || repeat('x', 300), f64 = 1e21, f32 = 16777216`,
  String.raw`f64 = 0.1, f32 = 0.1, nf = 5e-324, dec9 = -0.01, dec76 = '123456789012345678901234567890.5', aan = [[], [NULL, nan, 1]]`,
  String.raw`u64 = 18446744073709551615, i64 = -9223372036854775808, u256 = '115792089237316195423570985008687907853269984665640564039457584007913129639935'`,
  String.raw`d = '2149-06-06', d32 = '1900-01-01', d649 = '2020-11-01 05:30:00.123456789', dt = '2106-02-07 06:28:15'`,
  String.raw`ip6 = '::ffff:1.2.3.4', ip4 = '255.255.255.255', u = '61f0c404-5cb3-11e7-907b-a6006ad3dba0', tn = (nan, [('2020-01-01', true)]), t = (-1, '\t\'')`,
]
const inserts = edges.map((edge, i) => {
  const cells = edge.split(/, (?=[a-z0-9]+ = )/).map((cell) => /^(\w+) = (.*)$/s.exec(cell))
  return `INSERT INTO first (id, ${cells.map((c) => `\`${c[1]}\``).join(', ')}) SELECT ${i}, ${cells.map((c) => c[2]).join(', ')}`
})

const texts = ['TabSeparated', 'TSVWithNames', 'TSVWithNamesAndTypes', 'TSVRaw', 'TSVRawWithNames', 'TSVRawWithNamesAndTypes', 'CSV',
  'CSVWithNames', 'CSVWithNamesAndTypes', 'TSKV', 'Values', 'JSON', 'JSONStrings', 'JSONCompact', 'JSONCompactStrings', 'JSONColumns',
  'JSONCompactColumns', 'JSONColumnsWithMetadata', 'JSONObjectEachRow', 'JSONEachRow', 'JSONStringsEachRow', 'JSONCompactEachRow',
  'JSONCompactEachRowWithNames', 'JSONCompactEachRowWithNamesAndTypes', 'JSONCompactStringsEachRow',
  'JSONCompactStringsEachRowWithNames', 'JSONCompactStringsEachRowWithNamesAndTypes', 'Null', 'Vertical', 'CustomSeparated',
  'CustomSeparatedWithNames', 'CustomSeparatedWithNamesAndTypes', 'SQLInsert', 'RowBinary', 'RowBinaryWithNames', 'RowBinaryWithNamesAndTypes', 'Native']
// For tables that are narrow: in wide ones the engine's answer depends on how its rows arrive, and it breaks long cells into lines.
const pretty = ['Pretty', 'PrettyNoEscapes', 'PrettyMonoBlock', 'PrettyCompact', 'PrettyCompactNoEscapes', 'PrettyCompactMonoBlock',
  'PrettySpace', 'Markdown']
const files = ['Native', 'RowBinaryWithNamesAndTypes', 'Parquet', 'JSONEachRow', 'CSVWithNames', 'TSVWithNamesAndTypes']
const settings = [
  {},
  { output_format_json_quote_64bit_integers: 1, output_format_json_quote_denormals: 1, output_format_json_quote_decimals: 1 },
  { output_format_json_quote_64bit_floats: 1, output_format_json_escape_forward_slashes: 0, output_format_json_map_as_array_of_tuples: 1 },
  { format_custom_escaping_rule: 'CSV', format_custom_field_delimiter: '|', format_custom_row_before_delimiter: '<',
    format_custom_row_between_delimiter: ';', format_custom_result_after_delimiter: 'end' },
  { format_custom_escaping_rule: 'JSON' },
  { format_custom_escaping_rule: 'Quoted' },
  { date_time_output_format: 'iso', output_format_json_named_tuples_as_objects: 0, output_format_csv_crlf_end_of_line: 1 },
  { date_time_output_format: 'unix_timestamp', session_timezone: 'Europe/Berlin', output_format_json_array_of_rows: 1 },
]

const engine = await startRefServer()
const d = await Daemon.start()
const engineUrl = engine.url.replace(/\/$/, '')
process.on('exit', () => engine.stop())
const ask = (url, query, params = {}, body = undefined) => fetch(`${url}/?${new URLSearchParams({ query, ...params })}`,
  { method: 'POST', body: body ?? '' }).then(async (r) => {
  const bytes = Buffer.from(await r.arrayBuffer())
  if (!r.ok) throw new Error(`${query.slice(0, 200)}: ${r.status} ${bytes.toString().slice(0, 600)}`)
  return bytes
})

// Where two answers part, as text.
function difference(ours, theirs) {
  let at = 0
  while (at < ours.length && ours[at] === theirs[at]) at++
  const around = (b) => JSON.stringify(b.subarray(Math.max(0, at - 60), at + 60).toString('latin1'))
  return `at byte ${at} of ${ours.length} and ${theirs.length}: got ${around(ours)}, want ${around(theirs)}`
}

// Times, and how many rows there would be at least.
const withoutStatistics = (bytes) => Buffer.from(bytes.toString('latin1').replace(/"statistics":[^}]*}/, '')
  .replace(/"rows_before_limit_at_least": \d+/, ''), 'latin1')

async function sameText(query, format, params) {
  const [ours, theirs] = await Promise.all([d.url, engineUrl].map((url) => ask(url, `${query} FORMAT ${format}`, params)))
  const [a, b] = [ours, theirs].map(withoutStatistics)
  return a.equals(b) ? null : `${format} ${JSON.stringify(params)}: ${difference(a, b)}`
}

async function noDifference(comparisons) {
  const differences = (await parallel(8, comparisons)).filter(Boolean) // more would wait for a connection, and not for long
  check(differences.length === 0, `${differences.length} differ\n${differences.join('\n')}`)
}

// How the engine prints rows when nothing may be lost.
const exact = { output_format_json_quote_64bit_integers: 1, output_format_json_quote_denormals: 1, output_format_json_quote_decimals: 1 }

try {
  await test(d, {
    'the same rows here and there': async () => {
      await ask(engineUrl, `CREATE TABLE first (${structure}) ENGINE = Memory`)
      for (const insert of inserts) await ask(engineUrl, insert)
      await ask(engineUrl, `INSERT INTO first SELECT 100 + rowNumberInAllBlocks(), * EXCEPT id FROM generateRandom('${structure.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}', 7, 20, 3) LIMIT 60`)
      // As bytes of a file, so that nothing lies beneath the NULLs.
      const rows = await ask(engineUrl, 'SELECT * FROM first ORDER BY id FORMAT RowBinary')
      for (const url of [d.url, engineUrl]) {
        await ask(url, `CREATE TABLE o (${structure}) ENGINE = MergeTree ORDER BY id`)
        await ask(url, 'INSERT INTO o FORMAT RowBinary', {}, rows)
      }
      equal(await d.rows('SELECT count() FROM o'), [[inserts.length + 60]], 'rows')
    },
    'every text format is the engine\'s, byte for byte': async () => {
      const comparisons = []
      for (const params of settings) for (const format of texts) comparisons.push(() => sameText('SELECT * FROM o ORDER BY id', format, params))
      await noDifference(comparisons)
    },
    'few columns, few rows, no rows': async () => {
      const comparisons = []
      for (const format of texts) {
        for (const rest of ['id, s FROM o ORDER BY id LIMIT 9', 's FROM o WHERE id = 5', 'id, ns, a FROM o WHERE id = 77777', 'lcn, nf, tn FROM o ORDER BY id LIMIT 3']) {
          comparisons.push(() => sameText(`SELECT ${rest}`, format, {}))
        }
      }
      for (const format of pretty) {
        for (const rest of ['id, f64, ns FROM o WHERE id NOT IN (1, 2) ORDER BY id LIMIT 20', 'u64 FROM o WHERE id = 6', 'f64 FROM o WHERE id = 4', 'id, ns, a FROM o WHERE id = 77777', 'lcn, nf, a, d, ip6, t FROM o WHERE id < 4 ORDER BY id']) {
          comparisons.push(() => sameText(`SELECT ${rest}`, format, {}))
        }
      }
      await noDifference(comparisons)
    },
    'the engine reads what is printed': async () => {
      const types = structure.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
      for (const format of files) {
        // CSVWithNames calls the elements of a Tuple "t.1", which is no column of the table when read.
        const what = format === 'CSVWithNames' ? '* EXCEPT (t, tn)' : '*'
        const file = path.join(d.dir, `rows.${format}`)
        fs.writeFileSync(file, await ask(d.url, `SELECT * FROM o ORDER BY id FORMAT ${format}`, exact))
        const [got, want] = await Promise.all([`file('${file}', '${format}', '${types}')`, 'o'].map((from) =>
          ask(engineUrl, `SELECT ${what} FROM ${from} ORDER BY id FORMAT JSONCompactEachRow`, exact)))
        check(got.equals(want), `${format}: ${difference(got, want)}`)
      }
    },
    'DuckDB reads the Parquet': async () => {
      if (!hasPackage('@duckdb/node-api', 'readers')) return console.log('skipped: no DuckDB')
      // It has no decimals that wide, counts in microseconds, and its strings are UTF-8.
      const file = path.join(d.dir, 'duckdb.parquet')
      fs.writeFileSync(file, await ask(d.url, 'SELECT * EXCEPT (d649, dec76) FROM o WHERE id != 2 ORDER BY id FORMAT Parquet'))
      const { stdout, stderr } = await run('node', [path.join(tools, 'readers/check.mjs'), 'compare', '--compact', '--readers', 'duckdb,chdb,hyparquet', file])
      const verdict = JSON.parse(stdout.split('\n')[0] || '{}')
      check(verdict.verdict === 'exact' || verdict.verdict === 'lenient', `${stdout.slice(0, 3000)} ${stderr}`)
    },
  })
} finally {
  await engine.stop()
}
