// `sluice query`: statements of an argument, a file and standard input; and the shell, on a pseudo terminal of script(1).
import { execFile, spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, bin, check, equal, skip, test, until } from './lib.mjs'

if (spawnSync('script', ['--version']).status !== 0) skip('script(1) of util-linux is not installed')
const d = await Daemon.start()
const program = path.join(bin, 'sluice')
const state = path.join(d.dir, 'state')
const env = { ...process.env, SLUICE_URL: d.url, XDG_STATE_HOME: state, HOME: d.dir, TERM: 'xterm', LC_ALL: 'C.UTF-8' }

function sluice(args, input = '') {
  return new Promise((resolve) => {
    const child = execFile(program, args, { env }, (error, out, err) => resolve({ status: error ? error.code : 0, out, err }))
    child.stdin.on('error', () => {}) // it may end before it has read
    child.stdin.end(input)
  })
}
const answers = async (args, out, input) => equal(await sluice(args, input), { status: 0, out, err: '' }, args.join(' '))

// What was typed and printed, without the marks by which the line is drawn.
class Terminal {
  constructor(args = []) {
    this.shown = ''
    const words = [program, 'query', ...args].map((word) => `'${word}'`)
    const command = `exec ${words.join(' ')}` // else a shell is between, and may die of Ctrl-C
    this.child = spawn('script', ['-qefc', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    this.child.stdout.on('data', (data) => { this.shown += data })
    this.exit = new Promise((resolve) => this.child.on('exit', resolve))
  }

  // Waits until wanted is shown behind all that was awaited before.
  async sees(wanted) {
    await until(() => {
      const at = this.shown.indexOf(wanted)
      if (at < 0) return false
      this.shown = this.shown.slice(at + wanted.length)
      return true
    }, `'${wanted}' in ${JSON.stringify(this.shown)}`, 30)
  }

  type(text) { this.child.stdin.write(text) }

  async says(line, ...wanted) {
    this.type(`${line}\n`)
    for (const text of [...wanted, 'sluice> ']) await this.sees(text)
  }
}
async function terminal(args, body) {
  const t = new Terminal(args)
  try {
    await t.sees('sluice> ')
    await body(t)
    t.type('\\q\n')
    equal(await t.exit, 0, 'exit status of the shell')
  } finally {
    t.child.stdin.end()
    t.child.kill()
  }
}

await test(d, {
  'statements one after the other, until one fails': async () => {
    await answers(['query', 'CREATE TABLE t (a Int32, b String) ORDER BY a'], '')
    await answers(['query', "INSERT INTO t VALUES (1, 'x;y'); SELECT b FROM t; SELECT 2 AS two"], 'b\nx;y\ntwo\n2\n')
    await answers(['query'], 'a\n1\n', 'SELECT a\nFROM t;\n')
    const file = path.join(d.dir, 'statements.sql')
    fs.writeFileSync(file, "INSERT INTO t VALUES (2, 'z');\n-- how many\nSELECT count() AS n FROM t;\n")
    await answers(['query', '--file', file], 'n\n2\n')
    const r = await sluice(['query', 'SELECT 1 AS one; SELECT nothing; SELECT 3'])
    equal([r.status, r.out], [1, 'one\n1\n'], 'the second fails')
    check(/^sluice: Code: 47\. DB::Exception: /.test(r.err), r.err)
    equal((await sluice(['query', ' -- no more'])).status, 1, 'no statement')
  },
  'formats, parameters, and data from standard input': async () => {
    await answers(['query', '-q', 'SELECT 1 AS a, 2 AS b', '--format', 'CSV'], '1,2\n')
    await answers(['query', 'SELECT 1 AS a FORMAT TSV', '--format', 'CSV'], '1\n')
    equal(JSON.parse((await sluice(['query', 'SELECT 1 AS a', '-o', 'json'])).out).data, [{ a: 1 }], 'as JSON')
    await answers(['query', 'SELECT {n:Int32} + 1 AS n, {s:String} AS s', '--param', 'n=4', '--param=s=a=b', '--format', 'CSV'], '5,"a=b"\n')
    await answers(['query', 'CREATE TABLE fed (a Int32) ORDER BY a; INSERT INTO fed FORMAT CSV'], '', '5\n6\n')
    await answers(['query', 'SELECT sum(a) FROM fed', '--format', 'TSV'], '11\n')
    for (const args of [['-q', 'SELECT 1', '--file', 'x'], ['-q', 'SELECT 1', 'SELECT 2'], ['--param', 'x'], ['--format']])
      equal((await sluice(['query', ...args])).status, 2, args.join(' '))
    equal((await sluice(['query', '--file', path.join(d.dir, 'none')])).status, 1, 'no such file')
  },
  'the shell: lines become statements, with their rows and time': () => terminal([], async (t) => {
    t.type('SELECT 1 AS one,\n')
    await t.sees('      > ')
    await t.says("';' AS two;", '│ ;   │', '1 row in 0.')
    await t.says('SELECT 7 AS x\\G', 'Row 1:', 'x: 7', '1 row in')
    await t.says('SELECT 1; SELECT 22;', '│ 1 │', '│ 22 │')
    await t.says("INSERT INTO t FORMAT JSONEachRow {\"a\": 3, \"b\": \"it's\"};", 'stored, 1 written, in ')
    await t.says('SELECT nothing;', 'Code: 47. DB::Exception')
    await t.says('help', 'Ctrl-C gives up')
    await t.says('\\d', '│ t    │ MergeTree │')
    await t.says('\\d t', '│ a    │ Int32  │')
    await t.says('\\x', 'no command \\x')
  }),
  'USE and SET hold, whatever --database was': () => terminal(['--database', 'system'], async (t) => {
    await t.says('SELECT currentDatabase() AS d;', '│ system │')
    await t.says('\\c default', 'done in')
    await t.says('SELECT currentDatabase() AS d;', '│ default │')
    await t.says("SET session_timezone = 'Asia/Tokyo';", 'done in')
    await t.says('SELECT timezone() AS z;', '│ Asia/Tokyo │')
  }),
  'Tab completes keywords, functions and tables of the daemon': () => terminal([], async (t) => {
    await d.sql('CREATE TABLE measurements (temperature_celsius Float64) ORDER BY tuple()')
    await t.says('sel\t 1 AS x;', '│ 1 │')
    await t.says('SELECT groupUniq\t(number % 1) AS x FROM numbers(9);', '│ [0] │')
    await t.says('SELECT count() + max(temperature_c\t\x7f) AS m FROM measu\t;', '1 row in')
  }),
  'Ctrl-C gives up what is typed, or cancels what runs': () => terminal([], async (t) => {
    t.type('SELECT 1,\n')
    await t.sees('      > ')
    t.type('2 +\x03')
    await t.sees('sluice> ')
    await t.says('SELECT 3 AS x;', '│ 3 │')
    t.type("SELECT count() FROM numbers(1000000000000) WHERE number = 5 AND 'here' != '';\n")
    const running = async () => (await d.sql("SELECT count() FROM system.processes WHERE query LIKE '%here%' AND query NOT LIKE '%processes%'")).trim()
    await until(async () => await running() === '1', 'the statement')
    t.type('\x03')
    await t.sees('cancelled after')
    equal(await running(), '0', 'it was ended')
    await t.sees('sluice> ')
    await t.says('SELECT 4 AS x;', '│ 4 │')
  }),
  'the history is kept, for its owner alone': async () => {
    const file = path.join(state, 'sluice', 'history')
    equal(fs.statSync(file).mode & 0o777, 0o600, 'mode')
    await terminal([], async (t) => {
      t.type('\x1b[A\n') // the line before \q is the last SELECT
      await t.sees('│ 4 │')
      await t.sees('sluice> ')
    })
  },
})
