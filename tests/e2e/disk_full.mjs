// A full disk: refused honestly (503, code 243, Retry-After), nothing that was acknowledged is missing, what was refused is not
// there, the admin port answers, and it heals by itself when space returns. Needs root: the disk is a small tmpfs.
import crypto from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { spawnSync } from 'node:child_process'
import { Daemon, check, equal, skip, test } from './lib.mjs'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-full-'))
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', dir], { encoding: 'utf8' })
if (mounted.status !== 0) {
  fs.rmdirSync(dir)
  skip(`cannot mount a tmpfs (not root?): ${mounted.stderr ?? mounted.error}`)
}
process.on('exit', () => {
  spawnSync('umount', ['-l', dir])
  fs.rmdirSync(dir)
})

const ballast = path.join(dir, 'ballast')
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
})
