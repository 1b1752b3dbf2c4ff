// The `sluice` command as an operator meets it: what it prints, on which stream, and its exit status.
import { execFile, execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, bin, check, equal, test, until } from './lib.mjs'

const d = await Daemon.start()
const nowhere = 'http://127.0.0.1:1'

function sluice(args, { input = '', env = {} } = {}) {
  return new Promise((resolve) => {
    const child = execFile(path.join(bin, 'sluice'), args,
      { env: { ...process.env, SLUICE_URL: d.url, SLUICE_ADMIN_URL: d.adminUrl, ...env } },
      (error, out, err) => resolve({ status: error ? error.code : 0, out, err }))
    child.stdin.on('error', () => {}) // it may end before it has read
    child.stdin.end(input)
  })
}
const refused = async (args, status, said, options) => {
  const r = await sluice(args, options)
  equal(r.status, status, `status of ${args.join(' ')}`)
  check(said.test(r.err), `${args.join(' ')} says ${said}: ${r.err}`)
  equal(r.out, '', `${args.join(' ')}: standard output`)
}
const json = async (args, options) => JSON.parse((await sluice([...args, '-o', 'json'], options)).out)
const file = (name, text) => {
  const full = path.join(d.dir, name)
  fs.writeFileSync(full, text)
  return full
}
const verdicts = (letters) => letters.map((l) => l.verdict)

await test(d, {
  'top, reload, user hash and completion': async () => {
    const frames = (await sluice(['top', '--count', '2', '--every', '0.05', '-o', 'json'])).out.trim().split('\n').map((line) => JSON.parse(line))
    equal(frames.length, 2, 'frames')
    check(frames.every((f) => f.inserts_per_second === 0 && f.connections >= 1 && f.cpu >= 0), `figures: ${JSON.stringify(frames)}`)
    check(/^inserts\/s +0$/m.test((await sluice(['top', '--count', '1', '--every', '0.05'])).out), 'for people')
    await refused(['top', '--every', 'x'], 2, /--every takes seconds/)
    equal((await sluice(['reload'])).out, 'reloaded\n', 'reload')
    equal((await sluice(['user', 'hash'], { input: 'abc\n' })).out, 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n', 'the hash of abc')
    await refused(['user', 'hash'], 1, /no token on standard input/)
    const { token, password } = await json(['user', 'hash', '--generate'])
    equal((await sluice(['user', 'hash'], { input: token })).out, `${password}\n`, 'a new token')
    check(/^[0-9a-f]{64}$/.test(token), 'of 32 bytes')
    const script = (await sluice(['completion', 'bash'])).out
    const complete = (...words) => execFileSync('bash', ['-c', `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; echo "\${COMPREPLY[@]}"`, 'bash', 'sluice', ...words], { encoding: 'utf8' }).trim()
    equal([complete('dl'), complete('dlq', 'rep'), complete('--url', 'http://x', 'crash-test', '--ki')], ['dlq', 'replay', '--kills'], 'completions')
    const zsh = (await sluice(['completion', 'zsh'])).out
    check(/^#compdef sluice\n/.test(zsh), 'zsh finds it by its first line')
    const hasZsh = execFileSync('sh', ['-c', 'command -v zsh || true'], { encoding: 'utf8' }) !== ''
    if (hasZsh) {
      const offered = execFileSync('zsh', ['-fc', `compdef() { }; compadd() { shift; print -- "$@" }; _files() { }
        ${zsh}\nwords=(sluice --url http://x crash-test --ki); CURRENT=5; _sluice`], { encoding: 'utf8' })
      check(/ --kills /.test(offered) && !/ replay /.test(offered), `zsh is offered ${offered}`)
    }
    await refused(['completion', 'tcsh'], 2, /for bash, zsh and fish/)
  },
  'a wrong command line is told, with status 2': async () => {
    await refused([], 2, /a verb is missing/)
    await refused(['-V'], 2, /unknown option -V/)
    await refused(['statuss'], 2, /did you mean status/)
    await refused(['dlq'], 2, /dlq needs another word; see sluice dlq --help/)
    await refused(['tables', 'x'], 2, /too many: x/)
    await refused(['status', '-o', 'xml'], 2, /-o takes json or text/)
    await refused(['insert', 't', '--format'], 2, /--format needs a value/)
    await refused(['dlq', 'list', '--limit', '0'], 2, /--limit takes a number/)
    await refused(['dlq', 'replay'], 2, /name the letters' ids, or conditions .*or --all/)
    await refused(['dlq', 'drop', '--all'], 2, /say --yes too/)
  },
  'help is about the verb that is named': async () => {
    const { out } = await sluice(['dlq', '--help'])
    check(/dlq replay ID/.test(out) && !/insert TABLE/.test(out), out)
    check(/insert TABLE/.test((await sluice(['--help'])).out), 'all verbs without one')
  },
  'no daemon: who was asked, and that nothing happened': async () => {
    for (const args of [['query', 'SELECT 1'], ['insert', 't'], ['dlq', 'list'], ['flush']])
      await refused(args, 1, /^sluice: http:\/\/127.0.0.1:1: .*; is sluiced running there\?\n$/, { env: { SLUICE_URL: nowhere } })
    await refused(['status'], 1, /is sluiced running there/, { env: { SLUICE_ADMIN_URL: nowhere } })
    await refused(['status'], 1, /answered 404 instead of figures/, { env: { SLUICE_ADMIN_URL: `${d.url}/x` } })
  },
  'insert: files by their ending, standard input, tokens': async () => {
    await d.sql('CREATE TABLE t (a UInt8, b String) ENGINE = MergeTree ORDER BY a')
    check(/^stored 1 row, batch /.test((await sluice(['insert', 't'], { input: '{"a":1,"b":"x"}' })).out), 'one row')
    equal((await json(['insert', 't', file('bare.csv', '2,y\n3,z\n')])).written_rows, 2, 'CSV without names')
    equal((await json(['insert', 't', file('named.csv', 'b,a\nv,4\n')])).written_rows, 1, 'CSV with names')
    equal((await json(['insert', 't', file('named.tsv', 'b\ta\nw\t5\n')])).written_rows, 1, 'TSV with names')
    for (const duplicate of [false, true])
      equal((await json(['insert', 't', '--token', 'once'], { input: '{"a":6}' })).duplicate, duplicate, 'duplicate')
    equal(await d.rows('SELECT a, b FROM t ORDER BY a'),
      [[1, 'x'], [2, 'y'], [3, 'z'], [4, 'v'], [5, 'w'], [6, '']], 'the rows')
  },
  'insert: what cannot be read is not inserted': async () => {
    await refused(['insert', 't', d.dir], 1, /cannot read what to insert; nothing was stored/)
    await refused(['insert', 't', path.join(d.dir, 'none')], 1, /No such file/)
    await refused(['insert', 't'], 1, /Code: 27/, { input: '{"a":"x"}' })
  },
  'figures are numbers': async () => {
    const status = await json(['status'])
    equal([status.ready, status.rows_written, status.dead_letters], [true, 6, 0], 'status')
    await d.sql('OPTIMIZE TABLE t FINAL') // what it merged is kept for a while, and does not count
    equal([(await json(['status'])).parts, await d.sql("SELECT countIf(active), count() > 1 FROM system.parts WHERE table = 't'")], [1, '1\t1\n'], 'parts')
    check(!/rows_written":\d+\./.test((await sluice(['status', '-o', 'json'])).out), 'whole figures have no fraction')
  },
  'inserts: the newest first, and each with its outcome': async () => {
    const { inserts } = await json(['inserts', 't', '--limit', '2'])
    equal(inserts.map((i) => [i.table, i.rows, i.outcome, i.code]), [['t', 0, 'refused', 27], ['t', 1, 'duplicate', 0]], 'the last two')
    await refused(['inserts', '--limit', 'x'], 2, /--limit takes a number/)
    equal((await sluice(['inserts', 'nosuch'])).out, 'no inserts since the start\n', 'of another table')
  },
  'doctor: what is wrong, what to do, and a status for scripts': async () => {
    const verdict = ({ checks }, name) => checks.find(({ check }) => check === name)?.verdict
    const well = await json(['doctor'])
    equal([well.ok, ...['data port', 'readiness', 'versions', 'inserts', 'configuration', 'data', 'damage'].map((name) => verdict(well, name))],
      [true, 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'], 'a daemon that is well')
    equal(well.checks.find(({ check }) => check === 'data').found, d.data, 'its own directory')
    const standard = '/etc/sluice/sluice.yaml'
    equal(well.checks.find(({ check }) => check === 'configuration').found,
      fs.existsSync(standard) ? standard : `${standard} is not there: defaults and environment`, 'which configuration')
    const wrong = await sluice(['doctor', '--config', file('wrong.yaml', 'memory.mx: 1GiB\n')])
    check(wrong.status === 1 && /^fail +configuration .*wrong\.yaml:1:.*memory\.max/m.test(wrong.out), `a wrong configuration: ${wrong.out}`)
    const away = await sluice(['doctor', '-o', 'json'], { env: { SLUICE_URL: nowhere, SLUICE_ADMIN_URL: nowhere } })
    equal([away.status, verdict(JSON.parse(away.out), 'data port'), verdict(JSON.parse(away.out), 'readiness')], [1, 'fail', 'fail'], 'no daemon')
    const other = fs.mkdtempSync(path.join(d.dir, 'other-'))
    fs.writeFileSync(path.join(other, 'FORMAT'), 'something else\n')
    equal(verdict(JSON.parse((await sluice(['doctor', '-o', 'json', '--data-dir', other])).out), 'data'), 'fail', 'the directory of something else')
    fs.mkdirSync(path.join(d.data, 'damaged'), { recursive: true })
    fs.writeFileSync(path.join(d.data, 'damaged', 'x'), '')
    equal([verdict(await json(['doctor']), 'damage'), (await sluice(['doctor'])).status], ['warn', 0], 'a damaged file warns')
    fs.unlinkSync(path.join(d.data, 'damaged', 'x'))
    await refused(['doctor', 'x'], 2, /too many: x/)
  },
  'support-bundle: figures and events, no rows and no secrets': async () => {
    const bundle = await json(['support-bundle'])
    equal(bundle.tables.map(({ name }) => name), ['t'], 'tables')
    check(/^sluice_build_info/m.test(bundle.metrics) && bundle.inserts.length > 0 && bundle.parts.length > 0, 'figures')
    await refused(['support-bundle', 'x'], 2, /too many/)
  },
  'a pager that ends early is not told about': async () => {
    const child = spawn(path.join(bin, 'sluice'), ['tables'], { env: { ...process.env, SLUICE_URL: d.url } })
    child.stdout.destroy()
    let err = ''
    child.stderr.on('data', (data) => { err += data })
    equal([await new Promise((resolve) => child.on('close', resolve)), err], [1, ''], 'status and standard error')
  },
  'dead letters: listed, shown, replayed and dropped by id, condition or all': async () => {
    for (const [i, input] of ['{"a":"p"}', '{"a":"q"}', '{"a":"r"}'].entries()) {
      await sluice(['insert', 't', '--ack', 'buffered'], { input })
      await until(async () => (await json(['dlq', 'list'])).letters.length === i + 1, 'a letter')
    }
    const first = await sluice(['dlq', 'list', '--limit', '2'])
    equal([first.status, first.out.trim().split('\n').length], [0, 3], 'a title and two letters')
    check(/the first 2; --limit N shows more/.test(first.err), 'that there may be more')
    equal((await json(['dlq', 'list', '--table', 'nosuch'])).letters, [], 'of another table')
    equal((await json(['dlq', 'list', '--table', 't', '--where', 'code = 1 OR bytes > 0'])).letters.length, 3, 'of this')
    check(/\nbody, 9 bytes:\n{"a":"p"}\n$/.test((await sluice(['dlq', 'show', '1'])).out), 'an id without its zeros')
    await refused(['dlq', 'show', '77'], 1, /no dead letter 77/)
    equal(verdicts((await json(['dlq', 'replay', '--where', "table = 't'"])).letters), ['refused', 'refused', 'refused'], 'replay')
    equal((await sluice(['dlq', 'replay', '1'])).status, 1, 'status of what is refused again')
    equal(verdicts((await json(['dlq', 'drop', '1', '77'])).letters), ['dropped', 'missing'], 'drop by id')
    equal((await sluice(['dlq', 'drop', '77'])).status, 1, 'status of what is not there')
    await d.sql('CREATE OR REPLACE TABLE t (a String) ENGINE = MergeTree ORDER BY a')
    equal((await sluice(['dlq', 'replay', '2'])).out, '0000000000000002 stored\n', 'mended')
    equal((await sluice(['dlq', 'drop', '--all', '--yes'])).out, '0000000000000003 dropped\n', 'drop all')
    equal(await sluice(['dlq', 'drop', '--all', '--yes']), { status: 0, out: 'no dead letters\n', err: '' }, 'none left')
  },
  'drain --wait ends when the daemon has': async () => {
    await refused(['drain', '--wait', 'x'], 2, /--wait takes a time/)
    equal(await sluice(['drain', '--wait', '60s']), { status: 0, out: 'draining\n', err: '' }, 'drain')
    equal(await d.exit, { code: 0, signal: null }, 'the daemon')
  },
})
