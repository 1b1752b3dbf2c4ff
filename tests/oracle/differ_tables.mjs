// Tables for differ_formats.mjs: columns of random types, and the SELECTs that make rows for them.

const WORDS = ["''", "'x'", "'a b'", "'it\\'s'", "'1'", "'\\t'", "'NULL'", "'ü'", "'\"q\"'", "'a,b'", "'\\\\N'", "'-'", "' x '"]

// name, and expressions over `number` whose values are everyday ones
const SCALARS = [
  ...[['UInt', 8], ['UInt', 16], ['UInt', 32], ['UInt', 64], ['UInt', 128], ['UInt', 256], ['Int', 8], ['Int', 16], ['Int', 32],
    ['Int', 64], ['Int', 128], ['Int', 256]].map(([t, n]) => [`${t}${n}`, ['number', '7', '0', t === 'Int' ? '-5' : '120']]),
  ['Float32', ['1.5', '-0.25', 'number / 3', '1e10', 'inf', 'nan']], ['Float64', ['1.5', '-0.25', 'number / 3', '1e100', '-inf', 'nan']],
  ['Decimal(9, 2)', ['1.25', '-3', 'number']], ['Decimal(18, 4)', ['1.25', '-3']], ['Decimal(38, 10)', ['1.5']],
  ['Decimal(76, 3)', ['-1.5']], ['Bool', ['true', 'false']], ['String', WORDS], ['String', WORDS], ['FixedString(3)', ["'ab'", "'abc'", "''"]],
  ['Date', ["'2024-02-29'", "'1970-01-01'", "'2149-06-06'"]], ['Date32', ["'2024-02-29'", "'1900-01-01'"]],
  ['DateTime', ["'2024-02-29 10:11:12'", "'1970-01-01 00:00:00'"]], ["DateTime('Europe/Moscow')", ["'2024-02-29 10:11:12'"]],
  ['DateTime64(3)', ["'2024-02-29 10:11:12.345'", "'1969-12-31 23:59:59.999'"]],
  ["DateTime64(6, 'America/New_York')", ["'2024-02-29 10:11:12.345678'"]], ['DateTime64(0)', ["'2024-02-29 10:11:12'"]],
  ["Enum8('a' = 1, 'b b' = -2, '' = 0)", ["'a'", "'b b'"]], ["Enum16('x' = 1000, '1' = 2, 'z' = 0)", ["'x'", "'1'"]],
  ['UUID', ["'61f0c404-5cb3-11e7-907b-a6006ad3dba0'"]], ['IPv4', ["'1.2.3.4'"]], ['IPv6', ["'::1'", "'::ffff:1.2.3.4'"]],
]
const INSIDE_LOW_CARDINALITY = /^(U?Int(8|16|32|64)|String|FixedString|Date|DateTime|Float)/


const cast = (type, make) => ({ type, value: () => `CAST(${make()} AS ${type})` })

function scalar(rng) {
  const [type, values] = rng.pick(SCALARS)
  return cast(type, () => rng.pick(values))
}

function typeOf(rng, depth) {
  const kind = depth > 0 ? rng.below(14) : 0
  if (kind >= 12) {
    const inner = typeOf(rng, depth - 1)
    return cast(`Array(${inner.type})`, () => `[${Array.from({ length: rng.below(3) }, inner.value).join(', ')}]`)
  }
  if (kind === 11) {
    const named = rng.one(2)
    const items = Array.from({ length: 1 + rng.below(3) }, () => typeOf(rng, depth - 1))
    return cast(`Tuple(${items.map((t, i) => (named ? `${'xyz'[i]} ` : '') + t.type).join(', ')})`,
      () => `tuple(${items.map((t) => t.value()).join(', ')})`)
  }
  if (kind === 10) {
    const [key, keys] = rng.pick([['String', WORDS], ['Int32', ['1', '-2']], ['LowCardinality(String)', WORDS]])
    const value = typeOf(rng, depth - 1)
    return cast(`Map(${key}, ${value.type})`, () => (rng.one(3) ? 'map()' : `map(${rng.pick(keys)}, ${value.value()})`))
  }
  const plain = scalar(rng)
  if (kind >= 8) return cast(`Nullable(${plain.type})`, () => (rng.one(3) ? 'NULL' : plain.value()))
  if (kind === 7 && INSIDE_LOW_CARDINALITY.test(plain.type)) {
    const nullable = rng.one(2)
    return cast(`LowCardinality(${nullable ? `Nullable(${plain.type})` : plain.type})`,
      () => (nullable && rng.one(3) ? 'NULL' : plain.value()))
  }
  return plain
}

const quoted = (name) => (/^\w+$/.test(name) ? name : `\`${name}\``)

function columnsOf(rng) {
  const names = ['a', 'b', 'c', rng.pick(['Ab', 'A', 'd e', 'a_1'])].slice(0, 1 + rng.below(4))
  const columns = names.map((name) => ({ name, ...typeOf(rng, 2), kind: rng.one(5) ? 'DEFAULT' : '' }))
  if (rng.one(8)) {
    for (const name of ['n.x', 'n.y']) {
      const t = typeOf(rng, 1)
      columns.push({ name, kind: '', ...cast(`Array(${t.type})`, () => `[${t.value()}, ${t.value()}]`) })
    }
  }
  for (const [name, kind] of [['m', 'MATERIALIZED'], ['l', 'ALIAS'], ['e', 'EPHEMERAL']])
    if (rng.one(10)) columns.push({ name, kind, ...scalar(rng) })
  return columns
}

// Which columns the statement names, which of them the body brings, and the SELECT that writes it.
export function insertOf(rng, columns, rows) {
  const named = rng.one(6) ? columns.filter((c) => !['MATERIALIZED', 'ALIAS'].includes(c.kind) && !rng.one(3)) : null
  const list = named?.length ? ` (${named.map((c) => quoted(c.name)).join(', ')})` : rng.one(25) ? ` (* EXCEPT (${quoted(columns[0].name)}))` : ''
  const brought = (named?.length ? named : columns.filter((c) => ['', 'DEFAULT'].includes(c.kind))).filter(() => !rng.one(15))
  if (rng.one(10)) brought.push({ name: rng.pick(['zz', 'A', 'm', 'e', 'l', 'n']), ...scalar(rng) })
  if (rng.one(10)) brought.reverse()
  const given = brought.map((c) => (rng.one(12) ? { ...typeOf(rng, 1), name: c.name } : c))
  if (given.length === 0) given.push(columns[0])
  const select = rng.one(3)
    ? `SELECT * FROM generateRandom('${given.map((c) => `${quoted(c.name)} ${c.type}`).join(', ').replaceAll("'", "\\'")}', ${rng.below(1e6)}, 6, 2)`
    : `SELECT ${given.map((c) => `${c.value()} AS ${quoted(c.name)}`).join(', ')} FROM numbers(${rows})`
  return { list, select: `${select} LIMIT ${rows}` }
}

export function tableOf(rng) {
  const columns = columnsOf(rng)
  const define = (c) => `${quoted(c.name)} ${c.type}${c.kind ? ` ${c.kind} ${c.value().replaceAll('number', '3')}` : ''}`
  return { columns, ddl: `CREATE TABLE t (${columns.map(define).join(', ')}) ENGINE = MergeTree ORDER BY tuple()` }
}
