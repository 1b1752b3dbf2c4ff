// F-9: the file system turns read-only under the running daemon, as ext4 does after an error of its disk. Nothing is
// acknowledged as stored or spooled any more, what is there can be read, and once the disk is well again a start finds
// all that was acknowledged. Needs root, loop devices and mkfs.ext4.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { spawnSync } from 'node:child_process'
import { Daemon, check, equal, skip, test } from './lib.mjs'

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-read-only-'))
const image = path.join(home, 'disk'), dir = path.join(home, 'mnt')
const call = (program, ...args) => spawnSync(program, args, { encoding: 'utf8' })

fs.mkdirSync(dir)
fs.closeSync(fs.openSync(image, 'w'))
fs.truncateSync(image, 512 << 20) // two segments of the spool have room
process.on('exit', () => {
  call('umount', '-l', dir)
  fs.rmSync(home, { recursive: true, force: true })
})
const mount = () => call('mount', '-o', 'loop,errors=remount-ro', image, dir)
for (const [what, { status, stderr, error }] of Object.entries({ 'mkfs.ext4': call('mkfs.ext4', '-q', '-F', image), mount: mount() }))
  if (status !== 0) skip(`${what} does not work here (not root, no loop devices?): ${stderr || error}`)

const d = await Daemon.start({ dir, args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=5', '--set', 'flush.attempts=2'] })
const kept = []
const levels = { stored: {}, spooled: { sluice_ack: 'spooled' } }

await test(d, {
  'while the disk is well': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    for (let id = 0; id < 40; id++) {
      const [level, params] = Object.entries(levels)[id % 2]
      const a = await d.insert('t', `{"id":${id}}`, params)
      equal([a.status, a.headers['x-sluice-ack']], [200, level], a.text)
      kept.push(id)
    }
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
  },
  'it turns read-only: nothing is acknowledged as kept, and what is there is read': async () => {
    const aborted = call('mount', '-o', 'remount,abort', dir)
    if (aborted.status !== 0) skip(`remount,abort does not work here: ${aborted.stderr}`)
    for (const [level, params] of Object.entries(levels)) {
      for (let id = 100; id < 104; id++) {
        const a = await d.insert('t', `{"id":${id}}`, params)
        check(a.status >= 500 && a.headers['x-clickhouse-exception-code'] !== undefined, `${level}: ${a.status} ${a.text}`)
      }
    }
    equal(await d.rows('SELECT count(), uniqExact(id) FROM t'), [[kept.length, kept.length]], 'rows')
    check((await d.metric('sluice_disk_errors_total')) > 0, 'it is told')
    equal((await d.admin('/-/healthy')).status, 200, 'the process is alive')
  },
  'once the disk is well, a start needs nobody, and what was acknowledged is there': async () => {
    await d.kill()
    equal(call('umount', dir).status, 0, 'umount')
    check(call('e2fsck', '-p', '-f', image).status < 4, 'e2fsck')
    equal(mount().status, 0, 'mount')
    await d.launch()
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    const ids = (await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id))
    equal(ids, kept, 'rows: those acknowledged, and none that was refused')
    equal((await d.insert('t', '{"id":1000}')).status, 200, 'and more come')
  },
})
