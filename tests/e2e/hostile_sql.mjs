// SQL meant to do harm: every statement ends in an error that ClickHouse's clients understand, or does only what it says;
// the daemon goes on, no file appears or is read, and the table next door stays as it is.
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, check, equal, test } from './lib.mjs'

const d = await Daemon.start()
const post = async (body, params = {}) => {
  const r = await fetch(`${d.url}?${new URLSearchParams(params)}`, { method: 'POST', body })
  return { status: r.status, code: Number(r.headers.get('x-clickhouse-exception-code') ?? 0), text: await r.text() }
}
const refused = async (statements, params) => {
  for (const statement of statements) {
    const { status, code, text } = await post(statement, params)
    check(status >= 400 && code > 0 && text.startsWith(`Code: ${code}. DB::Exception: `), `an error: ${statement.slice(0, 120)} gave ${status} ${text.slice(0, 200)}`)
  }
}
const ask = async (statement, params) => {
  const { status, text } = await post(statement, params)
  equal(status, 200, `${statement.slice(0, 120)}: ${text.slice(0, 200)}`)
  return text
}
const target = path.join(d.dir, 'stolen')
const secret = path.join(d.dir, 'secret.tsv')
fs.writeFileSync(secret, '1\tsecret\n')

// Of every kind the engine has; the ones that read from elsewhere would be a hole.
const functions = [`file('${secret}', 'TSV', 'a Int8, b String')`, "url('http://127.0.0.1:1/', 'TSV', 'a Int8')", "s3('http://127.0.0.1:1/b/k', 'TSV')",
  "s3Cluster('c', 'http://127.0.0.1:1/b/k')", "remote('127.0.0.1:1', 'system', 'one')", "remoteSecure('127.0.0.1', system.one)", "cluster('default', system.one)",
  "clusterAllReplicas('default', system.one)", "mysql('127.0.0.1:1', 'd', 't', 'u', 'p')", "postgresql('127.0.0.1:1', 'd', 't', 'u', 'p')", "mongodb('127.0.0.1:1', 'd', 'c', 'u', 'p', 'a Int8')",
  "redis('127.0.0.1:1', 'k', 'k String')", "sqlite('/etc/passwd', 't')", "odbc('DSN=x', 'd', 't')", "jdbc('x', 'd', 't')", "hdfs('hdfs://127.0.0.1:1/f', 'TSV', 'a Int8')",
  "azureBlobStorage('x', 'y', 'z')", "gcs('http://127.0.0.1:1/b/k')", "deltaLake('http://127.0.0.1:1/')", `deltaLakeLocal('${d.dir}')`, "iceberg('http://127.0.0.1:1/')", `icebergLocal('${d.dir}')`,
  "hudi('http://127.0.0.1:1/')", "executable('cat', 'TSV', 'a Int8')", "dictionary('d')", "merge('system', '.*')", "loop(system.one)", "generateRandom('a Int8')", "values('a Int8', 1)",
  "view(SELECT 1)", "input('a Int8')", "format(TSV, '1')", `fileCluster('c', '${secret}')`, "urlCluster('c', 'http://127.0.0.1:1/')", "ytsaurus('a', 'b', 'c', 'd')", "mergeTreeIndex(default, t)",
  "fuzzQuery('SELECT 1')", "null('a Int8')", "timeSeriesData('t')", "arrowFlight('127.0.0.1:1', 'd')"]

await test(d, {
  'a table next door': async () => {
    await ask('CREATE TABLE keep (a Int64, s String) ENGINE = MergeTree ORDER BY a')
    await ask("INSERT INTO keep VALUES (1, 'one'), (2, 'two')")
  },
  'table functions reach nothing outside': async () => {
    await refused(functions.map((f) => `SELECT * FROM ${f}`))
    await refused(functions.filter((f) => !f.startsWith('null(')).map((f) => `INSERT INTO FUNCTION ${f} VALUES (1)`))
    await refused(functions.map((f) => `CREATE TABLE stolen AS ${f}`))
    await refused(functions.map((f) => `INSERT INTO keep SELECT 1, * FROM ${f}`).filter((text) => !text.includes('input(')))
  },
  'no file is written': async () => {
    await refused([`SELECT * FROM keep INTO OUTFILE '${target}'`, `SELECT 1 INTO OUTFILE '${target}' TRUNCATE FORMAT TSV`, `INSERT INTO keep FROM INFILE '${secret}' FORMAT TSV`,
      `ATTACH DATABASE '${target}' AS x`, `VACUUM INTO '${target}'`, `BACKUP TABLE keep TO File('${target}')`, `CREATE TABLE t ENGINE = File(TSV, '${target}') AS SELECT 1`,
      `CREATE DATABASE x ENGINE = SQLite('${target}')`, `CREATE TABLE \`../../${'x'.repeat(20)}\` (a Int8) ENGINE = Log`])
    check(!fs.existsSync(target), 'nothing was written')
  },
  'names are names, never paths': async () => {
    for (const name of ['..', '.', '../x', 'a/b', '/etc', 'a\\0b', '_tmp_x', '_sluice', 'x'.repeat(180), 'é', 'a b', "a'b", 'a"b', 'a;b', '%2e%2e', '-- x', 'a\\nb']) {
      const quoted = `\`${name}\``
      const { status } = await post(`CREATE TABLE ${quoted} (a Int8) ENGINE = MergeTree ORDER BY a`)
      if (status !== 200) continue
      await ask(`INSERT INTO ${quoted} VALUES (7)`)
      equal(await ask(`SELECT a FROM ${quoted}`), '7\n', `table ${name}`)
      await ask(`DROP TABLE ${quoted}`)
    }
    equal(fs.readdirSync(d.dir).sort(), ['data', 'ports', 'secret.tsv'], 'nothing beside the data directory')
    equal(fs.readdirSync(path.join(d.dir, 'data/tables')).filter((name) => !/^[A-Za-z0-9_%-]+$/.test(name)), [], 'odd directories')
  },
  "what is SQLite's alone is not there": async () => {
    await refused(['SELECT * FROM sqlite_master', 'SELECT * FROM sqlite_schema', 'SELECT * FROM main.sqlite_master', 'SELECT sqlite_version()', "SELECT load_extension('x')",
      'PRAGMA table_info(keep)', 'SELECT rowid FROM keep', 'SELECT _rowid_ FROM keep', "SELECT readfile('/etc/passwd')", `SELECT writefile('${target}', 'x')`, "SELECT randomblob(1000000000)",
      'SELECT zeroblob(1000000000)', "SELECT fts3_tokenizer('x')", 'SELECT ch(0)', 'SELECT cha(1)', 'SELECT * FROM t0', 'SELECT c0 FROM keep', 'SELECT ?1', 'SELECT :a', 'SELECT @a', 'SELECT $1',
      'EXPLAIN QUERY PLAN SELECT 1', 'SELECT * FROM pragma_table_info(1)', 'SELECT * FROM json_each(1)', 'REPLACE INTO keep VALUES (1)'])
  },
  'quotes and comments do not get out': async () => {
    for (const text of ["'; DROP TABLE keep; --", "\\'; DROP TABLE keep; --", "' UNION SELECT 1 --", '/* ', '*/ DROP TABLE keep', '{x:Identifier}', '{', '\u0000', '\\', "''", '`', '"']) {
      equal(await ask('SELECT length({x:String}), {x:String} = {y:String} FORMAT TSV', { param_x: text.replaceAll('\\', '\\\\').replaceAll('\0', '\\0'), param_y: text.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') }),
        `${Buffer.byteLength(text)}\t1\n`, JSON.stringify(text))
    }
    await refused(["SELECT 1; DROP TABLE keep", 'SELECT 1; SELECT 2', "SELECT 'a", 'SELECT "a', 'SELECT `a', 'SELECT /* 1', "SELECT 1 'a' 'b' 'c'", "SELECT * FROM keep WHERE s = ''; DROP TABLE keep",
      'SELECT {x:Identifier} FROM keep', 'SELECT {x}', 'SELECT {x:}', 'SELECT {x:String', 'SELECT * FROM {x:Identifier}'], { param_x: 'keep; DROP TABLE keep' })
  },
  'what the newer clauses are asked for is bounded': async () => {
    await refused(['SELECT number FROM numbers(2) ORDER BY number WITH FILL FROM 0 TO 1000000000000', "SELECT toDate('2024-01-01') AS d ORDER BY d WITH FILL TO toDate('2149-01-01') STEP INTERVAL 1 SECOND",
      'SELECT number AS n FROM numbers(2) ORDER BY n WITH FILL STEP 0', 'SELECT arrayJoin(range(1000000000))', 'SELECT count() FROM (SELECT arrayJoin(range(999999)) AS a, arrayJoin(range(999998)) AS b)',
      'SELECT sum(a) OVER (ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM keep', 'SELECT sum(a) OVER (ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW) FROM keep', 'SELECT lagInFrame(a, -1) OVER () FROM keep',
      'SELECT ntile(0) OVER () FROM keep', 'SELECT nth_value(a, 0) OVER () FROM keep', 'SELECT groupArray(number) OVER (ORDER BY number ROWS BETWEEN 1000000 PRECEDING AND CURRENT ROW) FROM numbers(1000000)',
      'SELECT topK(1000000000)(a) FROM keep', 'SELECT quantileExact(2)(a) FROM keep', "SELECT groupConcat(a)(a) FROM keep", 'SELECT a FROM keep LIMIT 1 WITH TIES',
      `CREATE TABLE t2 ENGINE = MergeTree ORDER BY a AS SELECT * FROM file('${secret}')`, `CREATE TABLE \`../x\` ENGINE = File(TSV) AS SELECT 1 AS a`, 'CREATE TABLE t2 AS SELECT 1; DROP TABLE keep',
      "CREATE TABLE t2 ENGINE = MergeTree ORDER BY a AS SELECT 1 AS `a) ENGINE = Log --`", 'CHECK TABLE keep; DROP TABLE keep', "SELECT 1 FROM keep WHERE a IN `keep'`"],
    { max_execution_time: 5 })
    await ask('DROP TABLE IF EXISTS t2')
  },
  'nesting ends in an error, not in the stack': async () => {
    const many = 10000
    for (const deep of [`SELECT ${'('.repeat(many)}1${')'.repeat(many)}`, `SELECT ${'['.repeat(many)}${']'.repeat(many)}`, `SELECT ${'-'.repeat(2)} \n${'not '.repeat(many)}1`,
      `SELECT ${'- '.repeat(many)}1`, `SELECT ${'abs('.repeat(many)}1${')'.repeat(many)}`, `SELECT ${'(SELECT '.repeat(many)}1${')'.repeat(many)}`, `${'('.repeat(many)}SELECT 1${')'.repeat(many)}`,
      `SELECT * FROM ${'(SELECT * FROM '.repeat(many)}keep${')'.repeat(many)}`, `SELECT 1 WHERE ${'1 IN ('.repeat(many)}1${')'.repeat(many)}`, `SELECT ${'CASE WHEN 1 THEN '.repeat(many)}1${' END'.repeat(many)}`,
      `SELECT CAST(1, '${'Array('.repeat(many)}Int8${')'.repeat(many)}')`, `CREATE TABLE deep (a ${'Array('.repeat(many)}Int8${')'.repeat(many)}) ORDER BY tuple()`,
      `CREATE TABLE deep (a Int8 DEFAULT ${'('.repeat(many)}1${')'.repeat(many)}) ORDER BY tuple()`, `INSERT INTO keep VALUES (${'('.repeat(many)}1${')'.repeat(many)}, 'x')`,
      `SELECT 1${' UNION ALL SELECT 1'.repeat(many)}`, `WITH ${Array.from({ length: many }, (_, i) => `${i ? `x${i - 1}` : 1} AS x${i}`).join(', ')} SELECT x${many - 1}`,
      `EXPLAIN ${'EXPLAIN '.repeat(many)}SELECT 1`, `SELECT ${'{'.repeat(many)}`, `SELECT ${'/*'.repeat(many)}`, `SELECT x${'.a'.repeat(many)} FROM keep`, `SELECT 1${'::Int8'.repeat(many)}`, `SELECT [1]${'[1]'.repeat(many)}`,
      `SELECT ${'sum('.repeat(many)}1${') OVER ()'.repeat(many)}`, `SELECT count() OVER (${'PARTITION BY ('.repeat(many)}`, `SELECT count() OVER ${'('.repeat(many)}`,
      `SELECT ${'arrayJoin('.repeat(many)}[1]${')'.repeat(many)}`, `SELECT 1 FROM keep${' ARRAY JOIN [1] AS x'.repeat(many)}`, `SELECT 1 FROM keep ARRAY JOIN ${'['.repeat(many)}`,
      `SELECT 1${' EXCEPT SELECT 1'.repeat(many)}`, `SELECT 1${' INTERSECT SELECT 1'.repeat(many)}`, `SELECT 1${' INTERSECT (SELECT 1'.repeat(many)}${')'.repeat(many)}`,
      `SELECT a FROM keep GROUP BY GROUPING SETS (${'('.repeat(many)}`, `SELECT a FROM keep GROUP BY GROUPING SETS (${Array(many).fill('(a)').join(',')})`,
      `SELECT a FROM keep GROUP BY CUBE(${Array(many).fill('a').join(',')})`, `SELECT a FROM keep WINDOW ${Array.from({ length: many }, (_, i) => `w${i} AS ()`).join(', ')}`,
      `CREATE TABLE deep ENGINE = MergeTree ORDER BY a AS ${'(SELECT '.repeat(many)}1 AS a${')'.repeat(many)}`, `CREATE TABLE deep AS ${'('.repeat(many)}`]) {
      const { status, code } = await post(deep, { max_query_size: 10000000 })
      check(status >= 400 && code > 0, `an error: ${deep.slice(0, 60)}... gave ${status}`)
    }
  },
  'and the table next door is as it was': async () => {
    equal(await ask('SELECT * FROM keep ORDER BY a'), '1\tone\n2\ttwo\n', 'keep')
    equal(await ask('SHOW TABLES'), 'keep\n', 'no table came up')
  },
})
