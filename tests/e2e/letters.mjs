// The whole life of dead letters, by SQL and by `sluice dlq`: tried, edited, exported, imported, replayed by themselves, and
// none lost or doubled when the daemon is killed meanwhile (P-7, P-8, P-26, P-27).
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, bin, check, equal, run, test, until } from './lib.mjs'

const noPause = ['--set', 'flush.attempts=1', '--set', 'dlq.replay_min=20ms', '--set', 'dlq.replay_max=20ms']
let d = await Daemon.start({ args: noPause })
const noWait = { wait_for_async_insert: 0 }
const file = (name, text) => {
  const full = path.join(d.dir, name)
  if (text !== undefined) fs.writeFileSync(full, text)
  return full
}
const sluice = async (args, env = {}) => {
  const { code, stdout, stderr } = await run(path.join(bin, 'sluice'), args,
    { env: { ...process.env, SLUICE_URL: d.url, SLUICE_ADMIN_URL: d.adminUrl, TMPDIR: d.dir, ...env } })
  return { status: code, out: stdout, err: stderr }
}
const verdicts = async (statement) => (await d.rows(statement)).map(([, verdict]) => verdict)
const letters = () => d.rows('SELECT id, body FROM system.dead_letter_queue ORDER BY id')
const quoted = (text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
const table = 'CREATE OR REPLACE TABLE t (a UInt8, b String) ENGINE = MergeTree ORDER BY a'

async function fail(...bodies) {
  for (const body of bodies) await d.insert('t', body, noWait)
  await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
}

// Each answered insert stands in the table or among the letters: which numbers do not, and how many do twice.
async function missing(numbers) {
  const stored = (await d.rows('SELECT n FROM k')).map(([n]) => Number(n))
  const kept = (await letters()).map(([, body]) => Number(JSON.parse(body).n))
  const seen = new Set([...stored, ...kept])
  equal(stored.length, new Set(stored).size, 'rows that are there twice')
  return numbers.filter((n) => !seen.has(n))
}

await test(d, {
  'a dry run says what would come of each letter, and changes nothing': async () => {
    await d.sql(table)
    await fail('{"a":"p"}', '{"a":"q","b":"x"}')
    const before = await d.rows('SELECT id, attempts, last_time FROM system.dead_letter_queue ORDER BY id')
    equal(await verdicts('SYSTEM REPLAY DEAD LETTERS DRY RUN'), ['refused', 'refused'], 'as things are')
    await d.sql('CREATE OR REPLACE TABLE t (a String) ENGINE = MergeTree ORDER BY a')
    equal(await verdicts('SYSTEM REPLAY DEAD LETTERS DRY RUN ALL'), ['would_store', 'would_store'], 'with another table')
    equal(await d.rows('SELECT id, attempts, last_time FROM system.dead_letter_queue ORDER BY id'), before, 'letters')
    equal(await d.rows('SELECT count() FROM t'), [[0]], 'rows')
    await d.sql(table)
    equal((await sluice(['dlq', 'replay', '--all', '--dry-run'])).status, 1, 'status where some are refused')
  },
  'nothing is dropped without a word of what': async () => {
    const answer = await d.request({ path: '/', body: 'SYSTEM DROP DEAD LETTERS' })
    equal([answer.status, answer.headers['x-clickhouse-exception-code']], [400, '62'], 'the answer')
    equal((await sluice(['dlq', 'drop', '--all', '--dry-run'])).out.split('\n').length, 3, 'what would go')
    equal((await letters()).length, 2, 'letters')
  },
  'an edited letter keeps its token, and is stored once however often it is replayed': async () => {
    const [[token]] = await d.rows("SELECT token FROM system.dead_letter_queue WHERE id = '0000000000000001'")
    equal((await sluice(['dlq', 'edit', '1'], { EDITOR: "sed -i 's/\"p\"/7/'" })).out, '0000000000000001 edited\n', 'edit')
    equal((await sluice(['dlq', 'edit', '1'], { EDITOR: 'false' })).status, 1, 'an editor that fails')
    equal(fs.readdirSync(d.dir).filter((name) => name.startsWith('sluice-letter')), [], 'left behind')
    equal(await d.rows("SELECT token, body FROM system.dead_letter_queue WHERE id = '0000000000000001'"), [[token, '{"a":7}']], 'token and body')
    const [line] = (await sluice(['dlq', 'export', '1'])).out.split('\n')
    equal(await verdicts("SYSTEM REPLAY DEAD LETTERS ID '1'"), ['stored'], 'replay')
    equal(await verdicts(`SYSTEM IMPORT DEAD LETTERS ${quoted(line)}`), ['imported'], 'the same letter again')
    equal(await verdicts("SYSTEM REPLAY DEAD LETTERS WHERE code = 27 AND body LIKE '%7%'"), ['duplicate'], 'its replay')
    equal(await d.rows('SELECT a FROM t'), [[7]], 'rows')
  },
  'what a letter may become is checked': async () => {
    equal(await verdicts("SYSTEM EDIT DEAD LETTERS SET format = 'nonsense' ALL"), ['refused'], 'format')
    equal(await verdicts("SYSTEM EDIT DEAD LETTERS SET columns = '(a, b' ALL"), ['refused'], 'columns')
    equal(await verdicts("SYSTEM EDIT DEAD LETTERS SET table = '' ALL"), ['refused'], 'table')
    check((await d.request({ path: '/', body: "SYSTEM EDIT DEAD LETTERS SET body = 'x' ALL" })).text.startsWith('Code: 36.'), 'one body for all')
    const [[token]] = await d.rows('SELECT token FROM system.dead_letter_queue')
    equal(await verdicts("SYSTEM EDIT DEAD LETTERS SET token = '', table = 'u' ALL"), ['edited'], 'table and token')
    const [[other, name]] = await d.rows('SELECT token, table FROM system.dead_letter_queue')
    check(other !== token && other.length === 36 && name === 'u', `a new token: ${other}`)
    equal(await verdicts('SYSTEM DROP DEAD LETTERS ALL'), ['dropped'], 'drop')
  },
  'what was exported comes back, byte for byte': async () => {
    const bodies = [Buffer.from([0x7b, 0xff, 0x00, 0x0a, 0x41, 0x7d]), Buffer.from('{"a":"\u0001\\u0000\u202e\'\\\\"}'), Buffer.from('x'.repeat(400000))]
    await fail(...bodies)
    equal((await sluice(['dlq', 'export', '--file', file('letters')])).err, 'sluice: 3 letters exported\n', 'export')
    equal((await sluice(['dlq', 'drop', '--all', '--yes'])).status, 0, 'drop')
    equal((await sluice(['dlq', 'import', file('letters')])).status, 0, 'import')
    const hex = await d.rows('SELECT hex(body), table, format FROM system.dead_letter_queue ORDER BY bytes')
    bodies.sort((a, b) => a.length - b.length)
    equal(hex, bodies.map((body) => [body.toString('hex').toUpperCase(), 't', 'JSONEachRow']), 'letters')
    const [[id]] = await d.rows('SELECT id FROM system.dead_letter_queue ORDER BY bytes LIMIT 1')
    check(/00000000  7b ff 00 0a 41 7d +\{\.\.\.A\}\n/.test((await sluice(['dlq', 'show', id])).out), 'bytes that are no text are shown in hex')
    equal((await sluice(['dlq', 'import', file('bad', '{"table":"t","format":"CSV","body":"1"}\n{"format":"CSV"}\n')])).status, 1, 'one of two')
    equal(await verdicts('SYSTEM DROP DEAD LETTERS ALL'), ['dropped', 'dropped', 'dropped', 'dropped'], 'drop')
  },
  'two letters under one token, as a crash between spool and letters leaves them: both are listed, one is stored': async () => {
    await d.sql('CREATE TABLE twice (n UInt8) ENGINE = MergeTree ORDER BY n')
    await d.insert('twice', '{"n":"x"}', noWait)
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const [line] = (await sluice(['dlq', 'export', '--all'])).out.split('\n')
    equal(await verdicts(`SYSTEM IMPORT DEAD LETTERS ${quoted(line)}`), ['imported'], 'its second one')
    const [{ token, id }, other] = JSON.parse((await sluice(['dlq', 'list', '-o', 'json'])).out).letters
    equal([other.token, other.id === id], [token, false], 'both are listed')
    await d.sql('CREATE OR REPLACE TABLE twice (n String) ENGINE = MergeTree ORDER BY n')
    equal((await verdicts('SYSTEM REPLAY DEAD LETTERS ALL')).sort(), ['duplicate', 'stored'], 'replayed at once')
    equal(await d.rows('SELECT n FROM twice'), [['x']], 'rows')
    equal(await letters(), [], 'letters')
  },
  'letters are chosen by code, table, user, token and time': async () => {
    await fail('{"a":"p"}')
    await d.insert('t', '{"a":"q"}', { ...noWait, insert_deduplication_token: 'mine' })
    await d.insert('t', '{"a":1,', { ...noWait, input_format_allow_errors_num: 0, input_format_allow_errors_ratio: 0.1 })
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const count = async (...options) => JSON.parse((await sluice(['dlq', 'list', '-o', 'json', ...options])).out).letters.length
    const all = await count()
    equal([await count('--token', 'mine'), await count('--sender', 'nobody'), await count('--table', 'other')], [1, 0, 0], 'token, user, table')
    equal([await count('--since', '2100-01-01 00:00:00'), await count('--until', '2100-01-01 00:00:00')], [0, all], 'time')
    equal([await count('--code', '27', '--token', 'mine'), await count('--code', '1'), await count('--limit', '1')], [1, 0, 1], 'code, limit')
    equal((await sluice(['dlq', 'list', '--code', 'x'])).status, 2, 'no number')
    equal((await sluice(['dlq', 'drop', '--token', 'mine'])).out.split('\n').length, 2, 'drop by token')
    await d.sql('SYSTEM DROP DEAD LETTERS ALL')
  },
  'a letter whose cause has passed is replayed by itself, others are not': async () => {
    await d.sql('CREATE TABLE few (a UInt8) ENGINE = MergeTree ORDER BY a SETTINGS parts_to_throw_insert = 1')
    await d.sql('SYSTEM STOP MERGES')
    await d.insert('few', '{"a":1}')
    await d.insert('few', '{"a":2}', noWait)
    await fail('{"a":"p"}')
    await until(async () => (await d.rows("SELECT max(attempts) FROM system.dead_letter_queue WHERE code = 252"))[0][0] > 2, 'attempts')
    await d.sql('TRUNCATE TABLE few')
    await until(async () => Number(await d.sql('SELECT count() FROM few')) === 1, 'the rows')
    await until(async () => (await letters()).length === 1, 'the letter to go')
    equal(await d.rows('SELECT code, attempts FROM system.dead_letter_queue'), [[27, 1]], 'the other')
    await d.sql('SYSTEM START MERGES')
    await d.sql('SYSTEM DROP DEAD LETTERS ALL')
  },
  'compact gives back room, while no daemon runs': async () => {
    await d.sql(table)
    await fail('{"a":"x"}', '{"a":"y"}')
    const before = await letters()
    check(before.length >= 2, `letters: ${before.length}`)
    equal((await sluice(['dlq', 'compact', d.data])).status, 4, 'in use')
    await d.stop()
    const told = await sluice(['dlq', 'compact', d.data, '-o', 'json'])
    equal(told.status, 0, told.err)
    const { ok, bytes_before: then, bytes } = JSON.parse(told.out)
    check(ok && bytes > 0 && bytes <= then, told.out)
    equal((await sluice(['dlq', 'compact', d.dir])).status, 1, 'no data directory')
    await d.launch()
    equal(await letters(), before, 'letters')
    equal((await sluice(['dlq', 'drop', '--all', '--yes'])).status, 0, 'drop')
  },
  'P-27: kill -9 during a replay, twice: each letter is delivered once': async () => {
    const numbers = Array.from({ length: 1500 }, (_, i) => i)
    await d.sql('CREATE TABLE k (n UInt64, s UInt8) ENGINE = MergeTree ORDER BY n')
    for (let i = 0; i < numbers.length; i += 50)
      await Promise.all(numbers.slice(i, i + 50).map((n) => d.insert('k', `{"n":${n},"s":"x"}`, noWait)))
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal((await letters()).length, numbers.length, 'letters')
    await d.sql('CREATE OR REPLACE TABLE k (n UInt64, s String) ENGINE = MergeTree ORDER BY n')
    for (let kill = 0; kill < 2; kill++) {
      const done = Number(await d.sql('SELECT count() FROM k'))
      const replay = sluice(['dlq', 'replay', '--all'])
      await until(async () => Number(await d.sql('SELECT count() FROM k')) > done, 'the first rows')
      await d.kill()
      equal((await replay).status, 1, 'status of a replay that was cut off')
      await d.launch()
      equal(await missing(numbers), [], `missing after kill ${kill + 1}`)
    }
    equal((await sluice(['dlq', 'replay', '--all'])).status, 0, 'the rest')
    equal(await d.rows('SELECT count(), uniqExact(n) FROM k'), [[numbers.length, numbers.length]], 'rows')
    equal(await letters(), [], 'letters')
  },
})

// In builds that have crash points: the daemon dies between two places, and the insert is in one of them, or in both under
// one token.
const has = fs.readFileSync(path.join(bin, 'sluiced')).includes('SLUICE_CRASH_POINT: want NAME')
for (const [point, where] of has ? [['letters.added', 'insert'], ['letters.added', 'spool'], ['replay.stored', 'replay']] : []) {
  d = await Daemon.start()
  await test(d, {
    [`P-26: a crash at ${point} (${where}): no insert is lost or doubled`]: async () => {
      const numbers = [1, 2, 3]
      const level = where === 'spool' ? { sluice_ack: 'spooled' } : noWait
      await d.sql('CREATE TABLE k (n UInt64, s UInt8) ENGINE = MergeTree ORDER BY n')
      const send = () => Promise.all(numbers.map((n) => d.insert('k', `{"n":${n},"s":"x"}`, { ...level, async_insert_busy_timeout_max_ms: 3600000, async_insert_use_adaptive_busy_timeout: 0 })))
      const flush = () => d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
      if (where === 'replay') {
        await send()
        await flush()
        equal((await letters()).length, 3, 'letters')
        await d.sql('CREATE OR REPLACE TABLE k (n UInt64, s String) ENGINE = MergeTree ORDER BY n')
      }
      await d.stop()
      d.env = { SLUICE_CRASH_POINT: point }
      await d.launch()
      if (where !== 'replay') await send()
      await (where === 'replay' ? sluice(['dlq', 'replay', '--all']) : flush().catch(() => {})) // the daemon dies of it
      equal((await d.exit).signal, 'SIGKILL', 'end')
      d.env = {}
      await d.launch()
      equal(await missing(numbers), [], 'missing')
      if (where === 'replay')
        equal((await sluice(['dlq', 'replay', '--all'])).out.replace(/^\S+ /gm, ''), 'duplicate\nduplicate\nduplicate\n', 'the replay after it')
      if (where === 'spool') { // each stood in both places
        await flush()
        const tokens = (await d.rows('SELECT token FROM system.dead_letter_queue')).map(([token]) => token)
        check(tokens.length > numbers.length && new Set(tokens).size === numbers.length, `letters: ${tokens}`)
        await d.sql('CREATE OR REPLACE TABLE k (n UInt64, s String) ENGINE = MergeTree ORDER BY n')
        equal((await verdicts('SYSTEM REPLAY DEAD LETTERS ALL')).filter((verdict) => verdict === 'stored').length, numbers.length, 'stored')
        equal(await letters(), [], 'letters')
      }
      equal(await missing(numbers), [], 'missing at last')
    },
  })
}
