// `sluice crash-test`: kill -9 under load, again and again (P-1, P-2, P-3, P-6, P-10, F-14). Usage: crash_test.mjs [KILLS]
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { bin, check, equal, run } from './lib.mjs'

const kills = process.argv[2] ?? '5'
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-e2e-'))
const sluice = path.join(bin, 'sluice')
const crashTest = (...args) => run(sluice, ['crash-test', '--dir', dir, '-o', 'json', ...args])

{
  const { code, stdout, stderr } = await crashTest('--kills', kills)
  process.stdout.write(stdout + stderr)
  equal(code, 0, 'exit status')
  const verdict = JSON.parse(stdout)
  equal(verdict.kills, Number(kills), 'kills')
  for (const key of ['lost', 'doubled', 'partial', 'resurrected', 'altered']) equal(verdict[key], 0, key)
  check(verdict.acknowledged.stored > Number(kills) && verdict.acknowledged.buffered > 0, 'there was load')
  check(/^good: /.test(stderr), 'a verdict for people')
  equal(fs.readdirSync(dir), [], 'nothing is left behind')
}

// A disk that loses files between two lives is found out. (All, as of a few the sources may still be there.)
{
  const lossy = path.join(dir, 'sluiced')
  fs.writeFileSync(lossy, `#!/bin/sh
find "$2/tables/default/crash_test" -name '*.parquet' -delete 2>/dev/null
exec "${path.join(bin, 'sluiced')}" "$@"
`, { mode: 0o755 })
  const { code, stdout, stderr } = await crashTest('--kills', '5', '--sluiced', lossy)
  equal(code, 1, 'exit status with losses')
  check(JSON.parse(stdout).lost > 0, `losses are counted: ${stdout}`)
  check(/^BAD: /.test(stderr) && /data and log are kept in/.test(stderr), `and told: ${stderr}`)
}

for (const [args, said] of [[['crash-test'], /--dir DIR is missing/], [['crash-test', '--dir', dir, '--kills', '0'], /--kills takes a number/],
  [['crash-test', '--dir', dir, '--sluiced', '/none', '--kills', '1'], /ended by itself: status 127/]]) {
  const { code, stderr } = await run(sluice, args)
  check(code !== 0 && said.test(stderr), `${args.join(' ')}: ${stderr}`)
}
fs.rmSync(dir, { recursive: true, force: true })
