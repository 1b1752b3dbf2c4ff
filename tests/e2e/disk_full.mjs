// A full disk: refused honestly (503, code 243, Retry-After), nothing that was acknowledged is missing, what was refused is not
// there, the admin port answers, and it heals by itself when space returns. Needs root: the disk is a small tmpfs.
import crypto from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { spawnSync } from 'node:child_process'
import { Daemon, check, equal, skip, test, until } from './lib.mjs'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-full-'))
const data = path.join(dir, 'data')
fs.mkdirSync(data)
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', data], { encoding: 'utf8' })
if (mounted.status !== 0) {
  fs.rmSync(dir, { recursive: true })
  skip(`cannot mount a tmpfs (not root?): ${mounted.stderr ?? mounted.error}`)
}
process.on('exit', () => {
  spawnSync('umount', ['-l', data])
  fs.rmSync(dir, { recursive: true })
})

const ballast = path.join(data, 'ballast')
// To the last byte.
function fill() {
  const fd = fs.openSync(ballast, 'a')
  for (let bytes = 1 << 20; bytes > 0;) {
    try {
      fs.writeSync(fd, Buffer.alloc(bytes, 1))
    } catch (error) {
      equal(error.code, 'ENOSPC', 'the error')
      bytes >>= 1
    }
  }
  fs.closeSync(fd)
}
const stored = []
const d = await Daemon.start({ dir, args: ['--set', 'flush.attempts=2', '--set', 'flush.retry_max=200ms'] })
await test(d, {
  'inserts until nothing fits': async () => {
    await d.sql('CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id')
    fs.writeFileSync(ballast, Buffer.alloc(6 << 20, 1))
    let refused = 0
    for (let id = 0; refused < 10 && id < 500; id++) {
      const a = await d.insert('t', JSON.stringify({ id, s: crypto.randomBytes(150000).toString('base64') }))
      if (a.status === 200) {
        stored.push(id)
        continue
      }
      refused++
      equal([a.status, a.headers['x-clickhouse-exception-code']], [503, '243'], `answer to ${id}: ${a.text.slice(0, 200)}`)
      check(Number(a.headers['retry-after']) >= 1, 'Retry-After')
    }
    check(refused > 0 && stored.length > 0, `${stored.length} stored, ${refused} refused`)
  },
  'stored is what was acknowledged, no more and no less': async () => {
    equal((await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id)), stored, 'ids')
  },
  'the admin port answers': async () => equal((await d.admin('/-/healthy')).status, 200, 'healthy'),
  'it heals when space returns': async () => {
    fs.rmSync(ballast)
    const a = await d.insert('t', '{"id":1000,"s":"x"}')
    equal(a.status, 200, a.text)
    stored.push(1000)
  },
  'the rows are there after kill -9': async () => {
    await d.kill()
    await d.launch()
    equal((await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id)), stored, 'ids')
  },
  'a start finds the disk full: what is stored can be read, inserts are refused, and it heals when space returns': async () => {
    await d.sql('CREATE TABLE halves (id UInt64) ENGINE = MergeTree PARTITION BY id % 2 ORDER BY id') // its log is written at each start
    equal((await d.insert('halves', '{"id":1}\n{"id":2}')).status, 200, 'an insert of two parts')
    const part = fs.readdirSync(path.join(data, 'tables/default/halves/0')).find((name) => name.endsWith('.parquet'))
    for (let turn = 0; turn < 2; turn++) {
      await d.kill()
      fill()
      await d.launch()
      await d.logged('no room to write tokens.log anew')
      fill() // a merge that the kill interrupted may have left room behind, of another table
      equal(await d.rows('SELECT count() FROM halves'), [[2]], 'rows')
      const refused = await d.insert('halves', '{"id":3}')
      equal([refused.status, refused.headers['x-clickhouse-exception-code']], [503, '243'], refused.text.slice(0, 200))
      equal(fs.existsSync(path.join(data, 'tables/default/halves/0', part)), true, 'the part')
    }
    fs.rmSync(ballast)
    equal((await d.insert('halves', '{"id":4}')).status, 200, 'once there is room')
    await d.kill()
    await d.launch()
    equal(await d.rows('SELECT id FROM halves ORDER BY id'), [[1], [2], [4]], 'after another start')
  },
  'F-1: what is in flight is finished with the reserve, new inserts are refused, deletes go on, and it comes back': async () => {
    const reserve = path.join(data, 'reserve')
    equal(fs.existsSync(reserve), false, 'one of 16 MiB on a disk of 12 MiB')
    d.args.push('--set', 'storage.reserve=256KiB', '--set', 'merge.threads=0') // a merge may need the room that is made
    await d.kill()
    await d.launch()
    for (let turn = 0; turn < 3; turn++) {
      await until(() => fs.existsSync(reserve), 'the reserve')
      fill()
      const flying = await d.insert('t', `{"id":${2000 + turn},"s":"y"}`)
      equal(flying.status, 200, flying.text.slice(0, 200))
      stored.push(2000 + turn)
      equal(fs.existsSync(reserve), false, 'the reserve')
      await d.logged('its reserve is given up', turn + 1)
      const refused = await d.insert('t', '{"id":1,"s":"y"}')
      equal([refused.status, refused.headers['x-clickhouse-exception-code']], [503, '243'], refused.text.slice(0, 200))
      check(refused.text.includes('storage.reserve'), refused.text)
      equal((await d.admin('/-/ready')).status, 503, 'ready')
      await d.sql(['TRUNCATE TABLE halves', 'ALTER TABLE halves ADD COLUMN c UInt8', 'DROP TABLE halves'][turn])
      fs.rmSync(ballast)
      equal((await d.insert('t', `{"id":${3000 + turn},"s":"y"}`)).status, 200, 'at once when there is room')
      stored.push(3000 + turn)
    }
    stored.sort((a, b) => a - b)
    await d.kill()
    await d.launch()
    equal((await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id)), stored, 'ids')
  },
})
