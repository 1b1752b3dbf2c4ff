// SELECTs beside inserts: their threads yield the processor, so many run at once, so many wait, the next are refused, and
// what ends them is heard meanwhile.
import fs from 'node:fs'
import os from 'node:os'
import { Daemon, check, equal, test, until } from './lib.mjs'

const endless = 'SELECT count() FROM numbers(4000000000) AS a, numbers(4000000000) AS b'
const threads = (d) => fs.readdirSync(`/proc/${d.child.pid}/task`).map((tid) => {
  const [, name, rest] = /^\d+ \((.*)\) (.*)$/.exec(fs.readFileSync(`/proc/${d.child.pid}/task/${tid}/stat`, 'utf8').trim())
  return { name, nice: Number(rest.split(' ')[16]) }
})

const own = os.getPriority()
const d = await Daemon.start({ args: ['--set', 'sql.threads=2', '--set', 'sql.waiting_max=3', '--set', 'sql.time_max=10m'] })
await test(d, {
  'the threads of SELECTs yield to those of inserts': async () => {
    const nice = (name) => [...new Set(threads(d).filter((t) => t.name === name).map((t) => t.nice))]
    await until(() => nice('query').length === 1 && nice('query')[0] === 19, 'the nice value of SELECTs')
    equal([nice('http'), nice('flush'), nice('spool')], [[own], [own], [own]], 'nice values of inserts')
    equal(threads(d).filter((t) => t.name === 'query').length, 2, 'threads')
  },
  'so many run, so many wait, the others are told to come back; inserts and commands go on': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    const answers = []
    const all = Array.from({ length: 8 }, (_, i) => d.request({ path: `/?query_id=q${i}`, body: endless, timeout: 600000 })
      .then((answer) => answers.push([answer.status, answer.headers['x-clickhouse-exception-code'], Number(answer.headers['retry-after']) >= 1])))
    await until(() => answers.length === 3, 'the refusals')
    equal(answers, Array(3).fill([503, '202', true]), 'the refusals')
    equal((await d.insert('t', '{"id":1}')).status, 200, 'an insert that waits')
    equal((await d.insert('t', '{"id":2}', { wait_for_async_insert: 0 })).status, 200, 'one that does not')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    await until(async () => {
      const killed = await d.sql("KILL QUERY WHERE query_id LIKE 'q%' FORMAT TSV")
      check(killed.split('\n').filter(Boolean).length <= 2, `they run at once: ${killed}`)
      return answers.length === 8
    }, 'all to be ended')
    await Promise.all(all)
    equal(answers.slice(3).map(([, code]) => code), Array(5).fill('394'), 'those that ran were cancelled')
    equal(await d.rows('SELECT count() FROM t'), [[2]], 'rows')
  },
})
