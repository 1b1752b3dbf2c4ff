// The life of a table over the wire: rows that are over, parts that are put aside and come back, columns that change their
// names, and what `sluice verify` says of a data directory.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, bin, check, equal, parallel, test, until } from './lib.mjs'

const d = await Daemon.start()
const run = (...args) => {
  const r = spawnSync(path.join(bin, 'sluice'), [...args, '--url', d.url, '--admin-url', d.adminUrl], { encoding: 'utf8' })
  return { status: r.status, out: r.stdout, err: r.stderr }
}
const verify = (...args) => {
  const r = run('verify', d.data, '-o', 'json', ...args)
  return { status: r.status, ...JSON.parse(r.out || '{}'), err: r.err }
}
const count = async (table) => Number((await d.rows(`SELECT count() FROM ${table}`))[0][0])

await test(d, {
  'a synchronous insert is cut into parts as the engine cuts it, an asynchronous one is not': async () => {
    await d.sql('CREATE TABLE blocks (a UInt32) ENGINE = MergeTree PARTITION BY a % 2 ORDER BY a')
    await d.sql('SYSTEM STOP MERGES blocks')
    const rows = Array.from({ length: 2500 }, (_, i) => `${i + 1}\n`).join('')
    const cut = async (block, joinRows, joinBytes, async_insert = 0) => {
      await d.sql('TRUNCATE TABLE blocks')
      const { status } = await d.insert('blocks', rows, { async_insert, max_insert_block_size: block, min_insert_block_size_rows: joinRows, min_insert_block_size_bytes: joinBytes }, { format: 'TSV' })
      equal(status, 200, 'the insert')
      equal(await d.sql('SELECT sum(a) FROM blocks'), `${2500 * 2501 / 2}\n`, 'its rows')
      return (await d.rows("SELECT rows FROM system.parts WHERE table = 'blocks' AND active AND partition = '0' ORDER BY min_block_number")).flat().map(Number)
    }
    // What 26.7 does.
    equal(await cut(1000, 1048449, 268402944), [1250], 'small blocks are joined')
    equal(await cut(1000, 0, 0), [500, 500, 250], 'or not')
    equal(await cut(1000, 1500, 0), [1000, 250], 'up to so many rows')
    equal(await cut(1000, 0, 4001), [1000, 250], 'or bytes')
    equal(await cut(500, 1000, 1), [250, 250, 250, 250, 250], 'whichever comes first')
    equal(await cut(1000, 0, 0, 1), [1250], 'one block')
    await d.sql('DROP TABLE blocks')
  },
  'rows go by TTL, whole parts at once and others at merges': async () => {
    await d.sql(`CREATE TABLE ttl (ts DateTime, k UInt32) ENGINE = MergeTree ORDER BY k TTL ts + INTERVAL 1 DAY
      SETTINGS merge_with_ttl_timeout = 0`)
    await d.insert('ttl', '{"ts":"2000-01-01 00:00:00","k":1}')
    await until(async () => await count('ttl') === 0, 'the part to go')
    await d.insert('ttl', '{"ts":"2000-01-01 00:00:00","k":2}\n{"ts":"2100-01-01 00:00:00","k":3}')
    await until(async () => await count('ttl') === 1, 'the row to go')
    equal(await d.rows('SELECT k FROM ttl'), [[3]], 'what stays')
    const log = await d.rows("SELECT event_type, merge_reason, reason, rows FROM system.part_log WHERE table = 'ttl' AND (reason = 'ttl' OR merge_reason = 'TTLDeleteMerge')")
    equal(log, [['RemovePart', 'NotAMerge', 'ttl', 1], ['MergeParts', 'TTLDeleteMerge', 'ttl', 1]], 'part_log')
    await d.sql('ALTER TABLE ttl REMOVE TTL')
  },
  'a partition is detached and attached, and named meanwhile': async () => {
    await d.sql('CREATE TABLE life (p UInt8, k UInt32, s String) ENGINE = MergeTree PARTITION BY p ORDER BY k')
    await d.insert('life', '{"p":1,"k":1,"s":"a"}\n{"p":2,"k":2,"s":"b"}')
    await d.sql('ALTER TABLE life DETACH PARTITION 1')
    equal([await count('life'), await d.rows("SELECT name FROM system.detached_parts WHERE table = 'life'")], [1, [['1_1_1_0']]], 'detached')
    await d.restart()
    await d.sql("ALTER TABLE life ATTACH PART '1_1_1_0'")
    equal([await count('life'), await d.rows('SELECT count() FROM system.detached_parts')], [2, [[0]]], 'attached')
  },
  'columns go and change their names': async () => {
    await d.sql("ALTER TABLE life RENAME COLUMN s TO text, ADD COLUMN s UInt8 DEFAULT 7")
    equal(await d.rows('SELECT text, s FROM life ORDER BY k'), [['a', 7], ['b', 7]], 'renamed')
    await d.sql('ALTER TABLE life DROP COLUMN text, DROP COLUMN s, ADD COLUMN text String')
    equal(await d.rows('SELECT * FROM life ORDER BY k'), [[1, 1, ''], [2, 2, '']], 'made anew')
  },
  'settings change by ALTER, while inserts go on': async () => {
    await d.sql('CREATE TABLE changing (k UInt64) ENGINE = MergeTree ORDER BY k')
    const inserts = parallel(8, Array.from({ length: 300 }, (_, k) => async () =>
      equal((await d.insert('changing', `{"k":${k}}`)).status, 200, `${k}`)))
    for (let i = 0; i < 5; i++) {
      await d.sql("ALTER TABLE changing MODIFY SETTING publish = 'delta', publish_interval = 1")
      await d.sql('ALTER TABLE changing RESET SETTING publish')
    }
    await d.sql("ALTER TABLE changing MODIFY SETTING publish = 'delta'")
    await inserts
    equal(await count('changing'), 300, 'rows')
    const log = path.join(d.data, 'tables/default/changing/_delta_log')
    await until(() => fs.existsSync(log) && fs.readdirSync(log).some((name) => name.endsWith('.json')), 'a version')
    await d.sql('ALTER TABLE changing MODIFY SETTING parts_to_throw_insert = 1, parts_to_delay_insert = 1')
    equal((await d.insert('changing', '{"k":300}', { async_insert: 0 })).headers['x-clickhouse-exception-code'], '252', 'thrown')
    await d.sql('ALTER TABLE changing RESET SETTING parts_to_throw_insert, parts_to_delay_insert')
    equal((await d.insert('changing', '{"k":300}', { async_insert: 0 })).status, 200, 'no more')
  },
  'a backup of a running daemon is a data directory of its own': async () => {
    await d.insert('life', '{"p":1,"k":100}', { insert_deduplication_token: 'before' })
    const backup = run('backup', 'monday')
    equal([backup.status, backup.err], [0, ''], 'backup')
    await d.insert('life', '{"p":1,"k":101}')
    await d.sql('OPTIMIZE TABLE life FINAL')
    equal(run('backup', 'monday').status, 1, 'the same name again')
    equal(run('backup', '../x').status, 1, 'no way out of DATA/backups')
    const restored = path.join(d.dir, 'restored')
    const restore = run('restore', path.join(d.data, 'backups/monday'), restored)
    equal([restore.status, restore.err], [0, ''], 'restore')
    equal(run('restore', path.join(d.data, 'backups/monday'), restored).status, 1, 'over another')
    const other = await Daemon.start({ dir: fs.mkdtempSync(path.join(d.dir, 'other-')), args: ['--data-dir', restored] })
    const rows = await other.rows('SELECT k FROM life WHERE k >= 100')
    const again = await other.insert('life', '{"p":1,"k":100}', { insert_deduplication_token: 'before' })
    equal([rows, again.headers['x-sluice-duplicate']], [[[100]], '1'], 'what was there then')
    await other.close()
    equal(run('verify', restored).status, 0, 'verified')
    const part = fs.readdirSync(path.join(d.data, 'backups/monday/tables/default/life/p=1'))[0]
    fs.unlinkSync(path.join(d.data, 'backups/monday/tables/default/life/p=1', part))
    equal(run('restore', path.join(d.data, 'backups/monday'), path.join(d.dir, 'third')).status, 1, 'a part is missing')
    fs.rmSync(path.join(d.data, 'backups'), { recursive: true })
  },
  'verify keeps out of a running daemon, and says that all is sound afterwards': async () => {
    await d.insert('life', '{"p":3,"k":"no number"}', { wait_for_async_insert: 0, input_format_allow_errors_num: 0 })
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(verify().status, 4, 'in use')
    await d.stop()
    const { status, ok, letters, damaged, findings } = verify()
    equal([status, ok, letters, damaged, findings], [0, true, 1, 0, []], 'sound')
  },
  'verify finds a flipped bit and repairs by setting the part aside': async () => {
    const dir = path.join(d.data, 'tables/default/life/p=2')
    const file = path.join(dir, fs.readdirSync(dir).find((name) => name.endsWith('.parquet')))
    const bytes = fs.readFileSync(file)
    bytes[10] ^= 1
    fs.writeFileSync(file, bytes)
    equal([verify('--quick').status, verify().status], [0, 1], 'quick looks at footers only')
    const repaired = verify('--repair')
    equal([repaired.status, repaired.damaged, repaired.set_aside, repaired.findings[0].path], [1, 1, 1, file], 'repair')
    equal(verify().status, 0, 'afterwards')
    check(fs.readdirSync(path.join(d.data, 'damaged')).some((name) => name.endsWith(path.basename(file))), 'it is kept')
    await d.launch()
    equal(await count('life'), 3, 'the rest')
  },
})
