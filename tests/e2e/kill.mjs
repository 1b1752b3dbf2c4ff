// kill -9 under load, again and again: no row of a `stored` answer is missing, none is there twice, for clients that retry
// under their token. Usage: kill.mjs [KILLS]
import http from 'node:http'
import { Daemon, check, equal, test } from './lib.mjs'

const kills = Number(process.argv[2] ?? 5)
const clients = 32
const seed = Number(process.env.SLUICE_SEED ?? Date.now() % 1000000)
console.log(`seed ${seed}, ${kills} kills`)
let state = seed
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return state / 4294967296
}

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_max_ms=20', '--set', 'async_insert_busy_timeout_min_ms=5'] })
const stored = new Set()
const refused = new Set()
let running = true
let alive = true

async function client(n) {
  for (let seq = 0; running; seq++) {
    const id = `${n}-${seq}`
    const rows = 1 + (seq % 3)
    const body = Array.from({ length: rows }, (_, i) => JSON.stringify({ id, i, rows })).join('\n')
    for (let verdict = null; verdict === null && running;) {
      while (!alive && running) await new Promise((resolve) => setTimeout(resolve, 2))
      try {
        const a = await d.insert('t', body, { insert_deduplication_token: id }, { timeout: 20000 })
        if (a.status === 200) {
          check(a.headers['x-sluice-ack'] === 'stored', 'X-Sluice-Ack')
          stored.add(id)
          verdict = 'stored'
        } else if (a.status < 500 && a.status !== 408) {
          refused.add(id)
          verdict = 'refused'
          throw Object.assign(new Error(`refused: ${a.status} ${a.text}`), { fatal: true })
        }
      } catch (error) {
        if (error.fatal) throw error // else: the connection died; the same insert goes out again under its token
      }
    }
  }
}

await test(d, {
  'load, kill, restart': async () => {
    await d.sql('CREATE TABLE t (id String, i UInt8, rows UInt8) ENGINE = MergeTree PARTITION BY i ORDER BY id')
    const all = Promise.all(Array.from({ length: clients }, (_, n) => client(n)))
    all.catch(() => { running = false })
    for (let k = 0; k < kills && running; k++) {
      const before = stored.size
      const pause = 30 + random() * 250
      while (stored.size < before + 20 && running) await new Promise((resolve) => setTimeout(resolve, 5))
      await new Promise((resolve) => setTimeout(resolve, pause))
      alive = false
      await d.kill()
      d.agent.destroy()
      await d.launch()
      d.agent = new http.Agent({ keepAlive: true, maxSockets: clients })
      alive = true
    }
    running = false
    await all
  },
  'nothing is lost, doubled, partial or resurrected': async () => {
    const rows = await d.rows('SELECT id, count(), max(rows), countIf(i = 0) FROM t GROUP BY id')
    const found = new Map(rows.map(([id, ...rest]) => [id, rest.map(Number)]))
    const lost = [...stored].filter((id) => !found.has(id))
    const wrong = [...found].filter(([, [n, want, firsts]]) => n !== want || firsts !== 1)
    const resurrected = [...refused].filter((id) => found.has(id))
    console.log(JSON.stringify({ kills, acknowledged: stored.size, found: found.size, lost: lost.length, wrong: wrong.length, resurrected: resurrected.length }))
    equal([lost.slice(0, 5), wrong.slice(0, 5), resurrected.slice(0, 5)], [[], [], []], 'lost, partial or doubled, resurrected')
    check(stored.size > kills * 20, 'there was load')
  },
})
