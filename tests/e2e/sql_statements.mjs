// Statements around SELECT: CREATE TABLE ... AS SELECT, temporary tables, files of a form as tables, IN of a name, CHECK TABLE, SHOW INDEX.
import { Daemon, check, equal, test } from './lib.mjs'

const d = await Daemon.start()
const ask = async (query, params = {}) => {
  const r = await fetch(`${d.url}?${new URLSearchParams(params)}`, { method: 'POST', body: query })
  return r.ok ? r.text() : `error ${r.headers.get('x-clickhouse-exception-code')}`
}
const form = async (fields, files, params = {}) => {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.append(name, value)
  for (const [name, text] of Object.entries(files)) body.append(name, new Blob([text]), 'file')
  const r = await fetch(`${d.url}?${new URLSearchParams(params)}`, { method: 'POST', body })
  return r.ok ? r.text() : `error ${r.headers.get('x-clickhouse-exception-code')}`
}

await test(d, {
  'CREATE TABLE ... AS SELECT makes the columns and takes the rows': async () => {
    equal(await ask("CREATE TABLE c ENGINE = MergeTree ORDER BY n AS SELECT number AS n, toString(number) AS s FROM numbers(3)"), '', 'created')
    equal(await ask('SELECT * FROM c ORDER BY n'), '0\t0\n1\t1\n2\t2\n', 'its rows')
    equal(await ask('DESCRIBE TABLE c', { describe_compact_output: 1 }), 'n\tUInt64\ns\tString\n', 'its columns')
    equal(await ask('CREATE TABLE c ENGINE = MergeTree ORDER BY n AS SELECT 1 AS n'), 'error 57', 'it is there already')
    equal(await ask('CREATE TABLE IF NOT EXISTS c ENGINE = MergeTree ORDER BY n AS SELECT 1 AS n'), '', 'so nothing is to do')
    equal(await ask('SELECT count() FROM c'), '3\n', 'and no row came')
  },
  'columns that are named have their defaults and types': async () => {
    equal(await ask("CREATE TABLE e (n UInt8, s String DEFAULT 'd') ENGINE = MergeTree ORDER BY n AS SELECT 7 AS n, 'x' AS s"), '', 'created')
    equal(await ask('SELECT *, toTypeName(n) FROM e'), '7\tx\tUInt8\n', 'its row')
    equal(await ask('CREATE OR REPLACE TABLE e ENGINE = MergeTree ORDER BY a AS SELECT 1 AS a'), '', 'replaced')
    equal(await ask('SELECT * FROM e'), '1\n', 'by the new one')
    equal(await ask('CREATE TABLE z ENGINE = MergeTree ORDER BY a EMPTY AS SELECT 1 AS a;'), '', 'EMPTY')
    equal(await ask('SELECT count() FROM z'), '0\n', 'takes no rows')
    const inUrl = { query: "CREATE TABLE u ENGINE = MergeTree ORDER BY n AS SELECT number AS n, 'long enough to be seen' AS s FROM numbers(2)" }
    equal(await ask('', inUrl), '', 'all of it in the URL')
    equal(await ask('SELECT max(n), any(s) FROM u'), '1\tlong enough to be seen\n', 'its rows')
    equal(await ask('CREATE TABLE bad ENGINE = MergeTree ORDER BY a AS SELECT nope AS a'), 'error 47', 'the error of the SELECT')
    equal(await ask('EXISTS TABLE bad'), '0\n', 'comes before there is a table')
  },
  'files of a form are tables of the statement': async () => {
    const files = { f: '1\ta\n2\tb\n' }
    equal(await form({ query: 'SELECT id, name FROM f ORDER BY id DESC' }, files, { f_structure: 'id UInt8, name String' }), '2\tb\n1\ta\n', 'by structure')
    equal(await form({ query: 'SELECT _2, _1 FROM f ORDER BY 1', f_types: 'UInt8, Map(String, UInt8)' }, { f: "1,{'a':2}\n" }, { f_format: 'CSV' }), "{'a':2}\t1\n", 'by types')
    equal(await form({ query: 'SELECT n FROM c JOIN f ON f.id = c.n' }, files, { f_structure: 'id UInt64, name String' }), '1\n2\n', 'joined')
    equal(await form({ query: 'SELECT n FROM c WHERE n IN f' }, { f: '2\n' }, { f_structure: 'id UInt64' }), '2\n', 'in IN')
    equal(await form({ query: 'SELECT * FROM f' }, files), 'error 36', 'without structure')
    equal(await form({ query: 'SELECT * FROM f' }, { f: 'x\n' }, { f_structure: 'id UInt8' }), 'error 27', 'a file that is not as told')
    equal(await form({ query: 'SELECT * FROM f' }, files, { f_structure: 'id Nope' }), 'error 50', 'a type that there is not')
    equal(await ask('SELECT 1', { f_structure: 'id UInt8' }), 'error 115', 'without a form it is a setting')
    equal(await ask('SELECT * FROM f'), 'error 60', 'and gone afterwards')
  },
  'IN takes the name of a table or of a WITH': async () => {
    equal(await ask('SELECT n FROM c WHERE n IN z'), '', 'a table without rows')
    equal(await ask('WITH t AS (SELECT 2 AS x) SELECT n FROM c WHERE n IN t'), '2\n', 'a WITH')
    equal(await ask('SELECT n FROM c WHERE n NOT IN (SELECT n FROM c WHERE n > 0)'), '0\n', 'a subquery')
  },
  'a temporary table is gone with its session, its place in another, and a restart': async () => {
    const mine = { session_id: 'mine' }
    equal(await ask('CREATE TEMPORARY TABLE c AS SELECT 5 AS n', mine), '', 'created')
    equal(await ask('INSERT INTO c VALUES (6)', { ...mine, async_insert: 1, wait_for_async_insert: 0 }), '', 'an insert')
    equal(await ask('SELECT * FROM c', mine), '5\n6\n', 'hides the table of its name')
    equal(await ask('SELECT count() FROM c', { session_id: 'other' }), '3\n', 'in its session alone')
    equal(await ask('INSERT INTO c SELECT n + 10 FROM c', mine), '', 'rows of its own')
    equal(await ask('SELECT max(n) FROM c', { ...mine, session_timeout: 0 }), '16\n', 'are there, until the session ends')
    equal(await ask('SELECT count() FROM c', mine), '3\n', 'then it is the table again')
    equal(await ask('CREATE TEMPORARY TABLE kept AS SELECT 1 AS n', mine), '', 'another')
    await d.restart()
    equal(await ask('SELECT * FROM kept', mine), 'error 60', 'no restart brings it back')
    equal(await ask('CREATE TEMPORARY TABLE big AS SELECT repeat(\'x\', 1000) AS s FROM numbers(40000)', mine), 'error 307', 'it is bounded')
  },
  'tables can be checked and described': async () => {
    equal(await ask('CHECK TABLE c'), 'all_1_1_0\t1\t\n', 'a part')
    equal(await ask('SHOW INDEX FROM c'), 'c\t1\tPRIMARY\t1\tn\tA\t0\t\\N\t\\N\t\\N\tPRIMARY\t\t\tYES\t\n', 'its key')
    equal(await ask('DESCRIBE numbers(1)', { describe_compact_output: 1 }), 'number\tUInt64\n', 'a table function')
    check((await ask('CHECK TABLE nope')) === 'error 60', 'a table that there is not')
  },
})
