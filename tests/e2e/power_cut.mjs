// power_cut.mjs [CUTS]: a real file system loses power while rows come and parts are merged. ext4 in a loop device is
// shut down by FS_IOC_SHUTDOWN without flushing its journal: what was not synced is gone after the next mount. Rows
// acknowledged as stored are there once, refused ones are not, and a retry under its token makes every insert count once.
// Needs root, loop devices, mkfs.ext4 and python3 (for the ioctl).
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { spawnSync } from 'node:child_process'
import { Daemon, check, equal, run, skip, test } from './lib.mjs'

const cuts = Number(process.argv[2] ?? 5), writers = 4
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-power-'))
const image = path.join(home, 'disk'), dir = path.join(home, 'mnt')
const call = (program, ...args) => spawnSync(program, args, { encoding: 'utf8' })

fs.mkdirSync(dir)
fs.closeSync(fs.openSync(image, 'w'))
fs.truncateSync(image, 128 << 20)
process.on('exit', () => {
  call('umount', '-l', dir)
  fs.rmSync(home, { recursive: true, force: true })
})
const mount = () => call('mount', '-o', 'loop', image, dir)
const made = call('mkfs.ext4', '-q', '-F', image), mounted = mount(), python = call('python3', '--version')
for (const [what, { status, stderr, error }] of Object.entries({ 'mkfs.ext4': made, mount: mounted, python3: python }))
  if (status !== 0) skip(`${what} does not work here (not root, no loop devices?): ${stderr || error}`)

// EXT4_GOING_FLAGS_NOLOGFLUSH: nothing more reaches the disk, not even the journal.
function cutPower() {
  return run('python3', ['-c', `import fcntl, os, struct
fcntl.ioctl(os.open(${JSON.stringify(dir)}, os.O_RDONLY), 0x8004587d, struct.pack('I', 2))`])
}

const d = await Daemon.start({ dir, args: ['--set', 'async_insert_busy_timeout_min_ms=1', '--set', 'async_insert_busy_timeout_max_ms=5'] })
const inserts = new Map() // token -> { ids, fate }
let next = 1, cut = false

async function send(token, ids, i) {
  const body = ids.map((id) => JSON.stringify({ p: id % 2, id })).join('\n')
  try {
    const answer = await d.insert('t', body, { insert_deduplication_token: token, ...(i % 3 ? {} : { async_insert: 0 }) })
    if (answer.status === 200) return 'stored'
    return answer.status >= 400 && answer.status < 500 ? 'refused' : 'unknown'
  } catch {
    return 'unknown' // the daemon was killed meanwhile
  }
}

async function write() {
  for (let i = 0; !cut; i++) {
    const ids = Array.from({ length: 1 + (i % 3) }, () => next++), token = `t${ids[0]}`
    const insert = { ids, fate: 'unknown' }
    inserts.set(token, insert)
    insert.fate = await send(token, ids, i)
  }
}

async function present() {
  const rows = (await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id))
  for (let i = 1; i < rows.length; i++) check(rows[i] !== rows[i - 1], `row ${rows[i]} is there twice`)
  return new Set(rows)
}

let unknown = 0
async function checkRows() {
  const rows = await present()
  for (const [token, { ids, fate }] of inserts) {
    const found = ids.filter((id) => rows.has(id)).length
    if (fate === 'stored') equal(found, ids.length, `rows of ${token}, which was stored`)
    else if (fate === 'refused') equal(found, 0, `rows of ${token}, which was refused`)
    else check(found === 0 || found === ids.length, `${found} of ${ids.length} rows of ${token}`)
  }
}

const steps = {
  'a table': () => d.sql('CREATE TABLE t (p UInt8, id UInt64) ENGINE = MergeTree PARTITION BY p ORDER BY id SETTINGS old_parts_lifetime = 1'),
}
for (let n = 1; n <= cuts; n++) {
  steps[`cut ${n} of ${cuts}`] = async () => {
    cut = false
    const writing = Array.from({ length: writers }, write)
    const optimizing = (async () => { while (!cut) await d.sql('OPTIMIZE TABLE t FINAL').catch(() => {}) })()
    await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 400))
    const done = await cutPower()
    if (done.code !== 0) skip(`FS_IOC_SHUTDOWN does not work here: ${done.stderr}`)
    cut = true
    await d.kill()
    await Promise.all([...writing, optimizing])
    equal(call('umount', dir).status, 0, 'umount')
    equal(mount().status, 0, 'mount')
    await d.launch()
    await checkRows()
    for (const [token, insert] of inserts) {
      if (insert.fate !== 'unknown') continue
      unknown++
      insert.fate = await send(token, insert.ids, 0)
      equal(insert.fate, 'stored', `the retry of ${token}`)
    }
    await checkRows()
    equal(fs.readdirSync(path.join(d.data, 'damaged')), [], 'damaged files')
  }
}
steps['rows of every insert once'] = async () => {
  equal((await present()).size, next - 1, 'rows')
  console.log(`  ${cuts} cuts, ${inserts.size} inserts, ${unknown} of them unknown at a cut`)
}
await test(d, steps)
