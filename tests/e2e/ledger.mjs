// Every accepted insert has a place, on every page; and a refusal that nobody is told becomes a dead letter.
import net from 'node:net'
import { Daemon, check, equal, test, until } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=5', '--set', 'async_insert_busy_timeout_max_ms=10'] })
const slow = { async_insert_busy_timeout_max_ms: 60000, async_insert_use_adaptive_busy_timeout: 0 }
const later = { wait_for_async_insert: 0 }

function sums(page) {
  const found = {}
  for (const line of page.split('\n')) {
    const sample = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line)
    if (sample) found[sample[1]] = (found[sample[1]] ?? 0) + Number(sample[2])
  }
  const of = (name) => found[`sluice_${name}`] ?? 0
  return {
    accepted: of('inserts_accepted_total'), recovered: of('inserts_recovered_total'), written: of('inserts_written_total'),
    duplicate: of('inserts_duplicate_total'), pending: of('inserts_pending'), letters: of('inserts_dead_letters'), kept: of('dead_letters'),
    discarded: of('inserts_discarded_total'), lost: of('inserts_lost_total'),
    rows: {
      accepted: of('rows_accepted_total'), recovered: of('rows_recovered_total'), written: of('rows_written_total'),
      duplicate: of('rows_duplicate_total'), pending: of('rows_pending'), letters: of('dead_letter_rows'),
      discarded: of('rows_discarded_total'), lost: of('rows_lost_total'),
    },
  }
}
const balance = (l) => l.accepted + l.recovered - (l.written + l.duplicate + l.pending + l.letters + l.discarded + l.lost)
async function ledger() {
  const l = sums((await d.admin('/metrics')).text)
  equal([balance(l), balance(l.rows)], [0, 0], JSON.stringify(l))
  check(Object.values(l.rows).every((n) => n >= 0), JSON.stringify(l.rows))
  return l
}

await test(d, {
  'a table': () => d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id'),
  'the refusal of an insert whose client has left becomes a letter': async () => {
    const body = '{"id":"not a number"}'
    const query = new URLSearchParams({ query: 'INSERT INTO t FORMAT JSONEachRow', ...slow })
    const socket = net.connect(d.port, '127.0.0.1')
    socket.write(`POST /?${query} HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await until(async () => (await d.metric('sluice_buffer_inserts')) === 1, 'the insert to wait')
    const open = await d.metric('sluice_http_connections')
    socket.destroy()
    await until(async () => (await d.metric('sluice_http_connections')) < open, 'the client to be gone')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(await d.rows('SELECT code, body FROM system.dead_letter_queue'), [[27, body]], 'letters')
  },
  'and of one whose client was told that it waits too long': async () => {
    const answer = await d.insert('t', '{"id":"neither"}', { ...slow, wait_for_async_insert_timeout: 1 })
    equal(answer.status, 408, answer.text)
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(Number(await d.sql("SELECT count() FROM system.dead_letter_queue WHERE body LIKE '%neither%'")), 1, 'letters')
  },
  'one who stays is told, and there is no letter': async () => {
    equal((await d.insert('t', '{"id":"x"}')).status, 400, 'status')
    equal((await ledger()).letters, 2, 'letters')
  },
  'letters are dropped by a condition': async () => {
    const dropped = await d.rows("SYSTEM DROP DEAD LETTERS WHERE body LIKE '%neither%' AND code = 27")
    equal(dropped.map((row) => row[1]), ['dropped'], 'verdicts')
    equal(await d.rows('SYSTEM DROP DEAD LETTERS WHERE code = 1'), [], 'none')
    const l = await ledger()
    equal([l.letters, l.discarded], [1, 1], 'ledger')
  },
  'under load every page adds up': async () => {
    let running = true
    const scraping = (async () => {
      let pages = 0
      for (; running; pages++) await ledger()
      return pages
    })()
    await Promise.all(Array.from({ length: 16 }, async (_, worker) => {
      for (let i = 0; i < 60; i++) {
        const ids = Array.from({ length: 1 + i % 4 }, (_, row) => (worker * 1000 + i) * 4 + row)
        const token = i % 5 === 0 ? { insert_deduplication_token: 'same' } : {}
        const level = [{}, later, { sluice_ack: 'spooled' }][i % 3]
        const format = i % 2 ? 'CSV' : 'JSONEachRow' // of CSV nobody knows the rows before they are typed
        const body = format === 'CSV' ? ids.join('\n') : ids.map((id) => `{"id":${i % 7 === 0 ? '"bad"' : id}}`).join('\n')
        const answer = await d.insert('t', body, { ...level, ...token }, { format })
        check([200, 400].includes(answer.status), answer.text)
      }
    }))
    await d.sql("SYSTEM REPLAY DEAD LETTERS WHERE code = 27")
    running = false
    check((await scraping) > 20, 'pages')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const l = await ledger()
    equal([l.pending, l.lost, l.rows.pending, l.rows.lost], [0, 0, 0, 0], 'at rest')
    equal(l.rows.written, Number(await d.sql('SELECT count() FROM t')), 'rows written')
    check(l.rows.letters > l.letters && l.rows.duplicate > l.duplicate, JSON.stringify(l))
    equal(l.letters, Number(await d.sql('SELECT count() FROM system.dead_letter_queue')), 'letters')
    equal(l.kept, l.letters, 'the letters by cause')
    equal(await d.metric('sluice_dead_letters{reason="CANNOT_PARSE_INPUT_ASSERTION_FAILED"}'), l.letters, 'their cause')
    check(l.duplicate > 0 && l.letters > 1, JSON.stringify(l))
  },
  'a restart finds the letters, and the ledger begins with them': async () => {
    const before = await ledger()
    await d.restart()
    const l = await ledger()
    equal([l.recovered, l.letters, l.kept, l.accepted], [before.letters, before.letters, before.letters, 0], 'ledger')
    equal([l.rows.recovered, l.rows.letters], [before.rows.letters, before.rows.letters], 'rows')
  },
  'a letter that is edited has other rows; what becomes of them is told': async () => {
    const { rows: before, letters } = await ledger()
    const [id, , n] = (await d.rows('SELECT id, body, length(body) - length(replaceAll(body, \'id\', \'i\')) FROM system.dead_letter_queue ORDER BY id LIMIT 1'))[0]
    const edit = async (body) => equal((await d.rows(`SYSTEM EDIT DEAD LETTERS SET body = '${body}' ID '${id}'`))[0][1], 'edited', body)
    await edit('{"id":900001} {"id":900002} {"id":900003} {"id":900004} {"id":900005} {"id":900006}')
    equal((await ledger()).rows.letters, before.letters - Number(n) + 6, 'six rows')
    await edit('{"id":900001}')
    const after = (await ledger()).rows
    equal([after.letters, after.discarded - before.discarded], [before.letters - Number(n) + 1, 5], 'one row')
    equal((await d.rows(`SYSTEM REPLAY DEAD LETTERS ID '${id}'`))[0][1], 'stored', 'replayed')
    const l = await ledger()
    equal([l.letters, l.rows.letters, l.rows.written], [letters - 1, after.letters - 1, before.written + 1], 'ledger')
  },
  'after kill -9 the rows of the spool are there again': async () => {
    const { rows: before } = await ledger()
    for (const level of [{ sluice_ack: 'spooled' }, later]) {
      const answer = await d.insert('t', '{"id":800001} {"id":800002} {"id":800003}', { ...slow, ...level })
      equal(answer.status, 200, answer.text)
    }
    equal((await ledger()).rows.pending, 6, 'pending')
    equal(await d.metric('sluice_rows_pending{table="default.t",place="spool"}'), 3, 'in the spool')
    await d.kill()
    await d.launch()
    await until(async () => (await ledger()).rows.pending === 3, 'the spool to be read')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const l = await ledger()
    equal([l.rows.recovered - before.letters, l.rows.written, l.rows.pending], [3, 3, 0], 'ledger')
  },
})
