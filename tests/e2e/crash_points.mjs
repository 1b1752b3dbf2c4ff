// Statements die at a named crash point; a start needs nobody and finds an old or a new state, nothing between, and the
// statement can be said again.
// Only in builds that have crash points.
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, bin, check, equal, run, skip, test } from './lib.mjs'

if (!fs.readFileSync(path.join(bin, 'sluiced')).includes('SLUICE_CRASH_POINT: want NAME')) skip('a build without crash points')

const all = [1, 2, 3, 4]
const even = [2, 4], odd = [1, 3]
// ATTACH takes its parts one by one, and those that are not there yet are still detached.
// [point, what is said before, what dies there, what may be there after a start, what is said then, what is there at the end]
const cases = [
  ['table.created', [], 'CREATE TABLE n (id UInt64) ORDER BY id', [all], 'CREATE TABLE IF NOT EXISTS n (id UInt64) ORDER BY id', all],
  ['table.renamed', [], 'RENAME TABLE t TO u', [all, []], 'RENAME TABLE u TO t', all],
  ['table.dropped', [], 'DROP TABLE t', [all, []], 'DROP TABLE IF EXISTS t', []],
  ['table.cut', [], 'TRUNCATE TABLE t', [all, []], 'TRUNCATE TABLE t', []],
  ['table.linked', [], 'ALTER TABLE t DETACH PARTITION 0', [all, odd], 'ALTER TABLE t DETACH PARTITION 0', odd],
  ['table.attached', ['ALTER TABLE t DETACH PARTITION 0'], 'ALTER TABLE t ATTACH PARTITION 0', [all, [1, 2, 3], odd], 'ALTER TABLE t ATTACH PARTITION 0', all],
  ['table.cut', [], 'ALTER TABLE t DROP PARTITION 1', [all, even], 'ALTER TABLE t DROP PARTITION 1', even],
  ['merge.written', [], 'OPTIMIZE TABLE t FINAL', [all], 'OPTIMIZE TABLE t FINAL', all],
  ['merge.renamed', [], 'OPTIMIZE TABLE t FINAL', [all], 'OPTIMIZE TABLE t FINAL', all],
  ['backup.waiting', [], "BACKUP ALL TO File('b')", [all], "BACKUP ALL TO File('b')", all],
  ['backup.tables', [], "BACKUP ALL TO File('b')", [all], "BACKUP ALL TO File('b')", all],
]
const ids = async (d) => {
  const there = (await d.rows("SELECT name FROM system.tables WHERE database = 'default' AND name = 't'")).length > 0
  return there ? (await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id)) : []
}
for (const [point, before, statement, allowed, again, final] of cases) {
  const d = await Daemon.start({ args: ['--set', 'merge.threads=0'] })
  await test(d, {
    [`a crash at ${point}: ${statement}`]: async () => {
      await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree PARTITION BY id % 2 ORDER BY id')
      for (const rows of ['{"id":1}\n{"id":2}', '{"id":3}\n{"id":4}']) equal((await d.insert('t', rows)).status, 200, rows)
      for (const each of before) await d.sql(each)
      await d.stop()
      d.env = { SLUICE_CRASH_POINT: point }
      await d.launch()
      await d.sql(statement).catch(() => {}) // the daemon dies of it
      equal((await d.exit).signal, 'SIGKILL', 'end')
      d.env = {}
      await d.launch()
      const found = await ids(d)
      check(allowed.some((each) => `${each}` === `${found}`), `after a start: ${found}`)
      await d.sql(again).catch(() => {}) // it may be done already
      equal(await ids(d), final, 'in the end')
      equal(fs.existsSync(path.join(d.data, 'backups/b')), statement.startsWith('BACKUP'), 'a backup')
      equal(await d.stop(), 0, 'exit status')
      const verified = await run(path.join(bin, 'sluice'), ['verify', d.data])
      equal(verified.code, 0, `verify: ${verified.stdout}${verified.stderr}`)
    },
  })
}
