// SELECTs share memory.max with everything else: one that finds no room is refused, inserts are not, and the process stays small.
import fs from 'node:fs'
import net from 'node:net'
import { Daemon, check, equal, parallel, sanitized, test, until } from './lib.mjs'

const MiB = 1 << 20
const budget = 64 * MiB
const resident = (d) => Number(/^VmHWM:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${d.child.pid}/status`, 'utf8'))[1]) * 1024
const greedy = [
  'SELECT groupArray(number) FROM numbers(20000000)',
  'SELECT number, count() FROM numbers(20000000) GROUP BY number ORDER BY number LIMIT 1',
  'SELECT number, toString(number) FROM numbers(20000000) ORDER BY number DESC LIMIT 3000000, 1',
  "SELECT uniqExact(concat('some text before it ', toString(number))) FROM numbers(20000000)",
]
// Much to do, and much to keep, within one row; number: of the row, 0 in a literal.
const slow = (number) => `SELECT length(arrayMap(x -> length(arrayMap(y -> toString(y + ${number}), range(1000))), range(9000)))`
const large = (number) => `SELECT length(arrayMap(x -> length(repeat('x', 50000 + ${number})), range(4000)))`
const queries = async (d) => Number(/^sluice_memory_bytes\{area="queries"\} (\d+)/m.exec((await d.admin('/metrics')).text)[1])
const isRefused = (answer) => {
  equal([answer.status, answer.headers['x-clickhouse-exception-code']], [503, '241'], answer.text.slice(0, 200))
  check(/Memory limit \(total\) exceeded/.test(answer.text), answer.text.slice(0, 200))
  check(Number(answer.headers['retry-after']) >= 1, 'Retry-After')
}

const d = await Daemon.start({ args: ['--set', 'memory.max=64MiB', '--set', 'sql.time_max=10m'] })
await test(d, {
  'O-1: SELECTs that want more than all of them may have are refused, and give it back': async () => {
    for (const query of greedy) isRefused(await d.request({ body: query, timeout: 600000 }))
    await until(async () => (await queries(d)) === 0, 'the memory to be given back')
    equal(await d.rows('SELECT count() FROM numbers(1000)'), [[1000]], 'one that is modest')
  },
  'O-1: side by side they take no more than one may, and no insert is refused for them': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    let over = false
    const readers = parallel(8, Array.from({ length: 8 }, (_, i) => async () => isRefused(await d.request({ body: greedy[i % 4], timeout: 600000 }))))
      .finally(() => { over = true })
    let sent = 0, most = 0
    while (!over) {
      const answer = await d.insert('t', `{"id":${sent++}}`, { wait_for_async_insert: 0 })
      equal(answer.status, 200, answer.text)
      if (sent % 50 === 0) most = Math.max(most, await queries(d))
    }
    await readers
    check(most <= budget / 2, `queries took ${most} bytes`)
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(await d.rows('SELECT count() FROM t'), [[sent]], 'rows')
    if (!sanitized) check(resident(d) <= budget + 64 * MiB, `resident at most ${resident(d) >> 20} MiB`)
  },
  'an answer counts until its reader has it': async () => {
    const socket = net.connect(d.port, '127.0.0.1')
    const body = "SELECT repeat('x', 1000) FROM numbers(16000)"
    socket.pause()
    socket.write(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await until(async () => (await queries(d)) >= 16000000 && (await d.rows('SELECT count() FROM system.processes'))[0][0] === 1, 'the answer')
    socket.destroy()
    await until(async () => (await queries(d)) === 0, 'the memory to be given back')
  },
  'one row, and a literal, are bounded too': async () => {
    for (const [number, from] of [['0', ''], ['number', ' FROM numbers(1)']]) {
      isRefused(await d.request({ body: large(number) + from }))
      await until(async () => (await queries(d)) === 0, 'the memory to be given back')
      const late = await d.request({ path: '/?max_execution_time=0.01', body: slow(number) + from })
      equal(late.headers['x-clickhouse-exception-code'], '159', late.text.slice(0, 200))
    }
    const killed = d.request({ path: '/?query_id=slow', body: slow('number') + ' FROM numbers(1000)' })
    await until(async () => (await d.sql("KILL QUERY WHERE query_id = 'slow' SYNC")).includes('slow'), 'the statement to run')
    equal((await killed).headers['x-clickhouse-exception-code'], '394', (await killed).text.slice(0, 200))
  },
  'max_memory_usage bounds one statement': async () => {
    const answer = await d.request({ path: '/?max_memory_usage=2000000', body: greedy[0] })
    equal(answer.status, 503, answer.text)
    check(/Query memory limit exceeded: maximum: 2000000 bytes/.test(answer.text), answer.text.slice(0, 200))
  },
})
