// P-4: no acknowledgement leaves before what it promises is stable, by the record of the real daemon's system calls.
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, check, equal, faults, test } from './lib.mjs'

// Replays a trace: at each acknowledgement of a level, nothing in its part of the data directory may be written and not
// synced, nor named in a directory that is not synced. One sender waits for each answer, so all that was written is his.
function replay(lines, level, isRelevant) {
  const dirty = new Set(), named = new Set(), wrong = []
  let sent = 0, syncs = 0
  for (const line of lines) {
    const [what, a, b] = line.split(' ')
    if (what === 'send' && a === level) {
      sent++
      if (dirty.size + named.size > 0) wrong.push(`acknowledgement ${sent} before ${[...dirty, ...named]}`)
    }
    if (what === 'write' && isRelevant(a)) dirty.add(a)
    if (what === 'rename' && isRelevant(b)) {
      if (dirty.has(a)) wrong.push(`${b} has its name before its bytes are safe`)
      named.add(b)
    }
    if (what === 'sync') {
      syncs += dirty.delete(a)
      for (const name of named) if (path.dirname(name) === a) named.delete(name)
    }
  }
  return { sent, syncs, wrong }
}

const lost = ['write /s/1.spool', 'send spooled', 'sync /s/1.spool', 'rename /s/_tmp_2 /s/2.spool', 'send spooled', 'sync /s']
equal(replay(lost, 'spooled', () => true).wrong.length, 2, 'what a wrong order looks like')

if (!faults) {
  console.log('left out: a sanitizer has to be loaded first')
} else {
  const inserts = 200
  const never = ['async_insert_busy_timeout_min_ms=3600000', 'async_insert_busy_timeout_max_ms=3600000', 'async_insert_max_query_number=1000000', 'async_insert_use_adaptive_busy_timeout=0']
  const at = ['async_insert_busy_timeout_min_ms=1', 'async_insert_busy_timeout_max_ms=1']
  for (const [level, settings, params, isRelevant] of [
    ['spooled', [...never, 'spool.segment=64KiB'], { sluice_ack: 'spooled' }, (name) => /\/data\/spool\/.*\.spool$/.test(name)],
    ['stored', at, {}, (name) => /\/data\/tables\/.*\.parquet$/.test(name)],
  ]) {
    const d = await Daemon.start({ args: settings.flatMap((pair) => ['--set', pair]) })
    const trace = path.join(d.data, 'trace') // where the daemon may write
    await test(d, {
      [`P-4: ${inserts} acknowledgements of ${level}`]: async () => {
        await d.sql('CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id')
        await d.stop()
        d.env = { LD_PRELOAD: faults, FAULT_TRACE_FILE: trace, FAULT_SYNC_MS: '2' }
        await d.launch()
        await d.sql('SYSTEM STOP MERGES')
        for (let id = 0; id < inserts; id++) {
          const a = await d.insert('t', JSON.stringify({ id, s: 'x'.repeat(id * 10) }), params)
          equal([a.status, a.headers['x-sluice-ack']], [200, level], a.text)
        }
        const { sent, syncs, wrong } = replay(fs.readFileSync(trace, 'utf8').split('\n'), level, isRelevant)
        equal(wrong, [], 'acknowledged too early')
        equal(sent, inserts, 'acknowledgements seen')
        check(syncs >= inserts, `${syncs} syncs of what was written`)
      },
    })
  }
}
