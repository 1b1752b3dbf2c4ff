// How differ_formats.mjs varies a body that the engine wrote: as clients get it odd or wrong.

const NUMBERS = ['0', '-0', '+1', '007', '-1', '1.', '.5', '1.0', '1.5', '-1.5e3', '1e2', '1E-2', '1e400', '1e-500', '255', '256', '-129', '65536',
  '4294967296', '18446744073709551616', '99999999999999999999999999', 'inf', '-inf', '+inf', 'Infinity', 'nan', 'NaN', '-nan', 'INF', '0x10', '1_000', '1,5', '1 2',
  '-', '+', '', '1e', '2147483648', '0.1', '123456789.987654321', '00', '1e5', '12abc', '1709201472', '1709201472.5', '1709201472123', '-5.', '0b1', '--1', '+-1',
  '340282366920938463463374607431768211456', '9223372036854775808', '1.23456789012345678901234567890']
const DATES = ['2024-02-29', '2024-2-9', '2024-02-30', '0000-00-00', '1969-12-31', '2300-01-01', '2149-06-07', '1899-12-31', '20240229', '2024/02/29', '29.02.2024',
  '2024-02-29T10:11:12Z', '2024-02-29 10:11:12', '2024-02-29 10:11:12.5', '2024-02-29T10:11:12.123456789Z', '2024-02-29 10:11', '2024-02-29 10', '2024-02-29 24:00:00',
  '2024-02-29 10:11:60', '2024-02-29 10:11:12+03:00', '2024-02-29 10:11:12 +0300', 'Feb 29 2024 10:11:12', '29 Feb 2024', '10:11:12', '2024-02-29 10:11:12 PM', '02/29/2024', 'now', 'today',
  '2024-02-29 10:11:12 UTC', '2024-02-29T10:11:12', '20240229101112', '2024-02-29 1:2:3', '1709201472', '1709201472.123', '-1', '0', '2106-02-07 06:28:16', '2024-13-01', 'Thu, 29 Feb 2024 10:11:12 GMT',
  '2024-02-29 10:11:12.', '2024-02-29 10:11:12.1234', '2262-04-12 00:00:00', '1900-01-01 00:00:00', '2024-060']
const WORDS = ['', ' ', 'NULL', 'null', '\\N', 'Null', 'ᴺᵁᴸᴸ', 'true', 'false', 'True', 'TRUE', 'yes', 'no', 'on', 'off', 't', 'F', '1', '0', 'a', 'b b', 'x', 'y', 'zz', '61F0C404-5CB3-11E7-907B-A6006AD3DBA0',
  '61f0c4045cb311e7907ba6006ad3dba0', '1.2.3', '1.2.3.4', '256.1.1.1', '1.2.3.4.5', '::', '::1', 'fe80::1%eth0', '::ffff:1.2.3.4', '1:2', 'ü', '日本', '\u0000', '\ufeff', "it's", '"', "''", '\\', '\\n', '\\x41', '\\u0041', '\\ud83d\\ude00', '\\ud83d', '\\q', '\\0',
  '[]', '[1]', "['a']", '[1,]', '[,]', '[ 1 , 2 ]', '{}', "{'a':1}", "{'a':1,'a':2}", '{"a":1}', '{"x":1}', '()', '(1)', "(1,'x')", '(1,2,)', '[NULL]', '[null]', "('a')", '[[1]]', '[[]]', '{1:2}', 'abcd', 'abc', '\r', '\t', '\n']
const PIECES = [' ', '\t', '\n', '\r\n', '\r', ',', ';', ':', '"', "'", '\\', '\\\\', '\\N', '[', ']', '{', '}', '(', ')', '0', '-', '+', '.', 'e', '\ufeff', '\0', 'null', '""', "''", '\\"', "\\'", '`', '#', '--', '/*', '|', '\xa0']

const EXPRESSIONS = ['1+1', '-1', '2*3', "toDate('2024-02-29')", 'now()', "toDateTime('2024-02-29 10:11:12')", "'a'||'b'", "concat('a','b')", 'NULL', 'DEFAULT', 'default', "CAST('1' AS UInt8)", "'1'::UInt8", '1::Int8',
  "x'6162'", "X'61'", "b'0101'", "b'01000001'", '0x1F', '0b101', '0o17', '1e-500', '1e500', '-1e500', '0x1p3', '$$a b$$', '$t$x$t$', "'a''b'", "'a\\'b'", '[1,2]', '[1, NULL]', "['a', 'b']", '[1, 2.5]', "[1,'a']", 'array(1,2)', '[[1],[2,3]]',
  "(1, 'x')", "tuple(1,'x')", "{'a':1}", "map('a',1)", "map()", '{}', '[]', '()', "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", 'generateUUIDv4() = generateUUIDv4()', 'true', 'false', 'TRUE', 'if(1,2,3)', "unhex('6162')", 'toString(5)',
  "toUInt8(300)", '1/2', '7 % 3', 'intDiv(7,2)', 'not 1', '1 = 1', '1 < 2', 'pi()', 'inf', 'nan', '-inf', '+1', '1.', '.5', "DATE '2024-02-29'", "INTERVAL 1 DAY", "toDate('2024-02-29') + 1", "now() - now()", "parseDateTimeBestEffort('29 Feb 2024')", "toDateTime64('2024-02-29 10:11:12.345', 3)",
  "lower('ABC')", "upper('ü')", "length('abc')", "range(3)", "arrayMap(x -> x+1, [1,2])", "splitByChar(',', 'a,b')", "toIPv4('1.2.3.4')", "IPv4StringToNum('1.2.3.4')", "toFixedString('ab', 3)", "toDecimal32('1.5', 2)", "toInt32('12')", 'abs(-5)', 'round(1.55, 1)', "replaceAll('aa','a','b')", "emptyArrayString()",
  'materialize(1)', '1 + NULL', "nullIf(1,1)", 'coalesce(NULL, 5)', 'ifNull(NULL, 1)', '18446744073709551616', '340282366920938463463374607431768211456', '-9223372036854775809', "'2024-02-29'", "'10'", '"a"', '`a`', 'a', "toStartOfDay(toDateTime('2024-02-29 10:11:12'))", "formatDateTime(toDateTime(0), '%Y')", "toTypeName(1)",
  "'\\x41\\u0042'", "'\\0'", "'a' 'b'", '1 2', '(1)', '((1))', '(1,)', '[1,]', '[(1,2)]', '(1+1, 2)', "[toDate('2024-02-29')]", "{'a': 1+1}", "{'a':[1]}", "{'a':1,'b':NULL}", '1_000', '1e2', '256', '-129', '1.5', "'abcd'", 'version()', '? ', "'a\nb'", '/* c */ 1', '1 -- c', 'CAST(1, \'String\')', "cast('a' as FixedString(3))", "toLowCardinality('a')", "toNullable(1)"]

const text = (body) => body.toString('latin1')
const bytes = (s) => Buffer.from(s, 'latin1')
const utf8 = (s) => Buffer.from(s, 'utf8').toString('latin1')

function replaceOne(rng, s, pattern, make) {
  const found = [...s.matchAll(pattern)]
  if (found.length === 0) return s
  const m = rng.pick(found)
  return s.slice(0, m.index) + make(m[0]) + s.slice(m.index + m[0].length)
}

const anyValue = (rng) => utf8(rng.pick(rng.pick([NUMBERS, DATES, WORDS])))
const place = (rng, s) => rng.below(s.length + 1)
const insert = (s, at, piece) => s.slice(0, at) + piece + s.slice(at)

// Any text format.
const TEXT = [
  (rng, s) => replaceOne(rng, s, /[-+]?\d+(\.\d+)?/g, () => utf8(rng.pick(NUMBERS))),
  (rng, s) => replaceOne(rng, s, /\d{4}-\d\d-\d\d( [\d:.]+)?/g, () => rng.pick(DATES)),
  (rng, s) => replaceOne(rng, s, /"(?:[^"\\]|\\.)*"/g, () => `"${anyValue(rng)}"`),
  (rng, s) => replaceOne(rng, s, /'(?:[^'\\]|\\.)*'/g, () => `'${anyValue(rng)}'`),
  (rng, s) => replaceOne(rng, s, /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, (q) => q.slice(1, -1)),
  (rng, s) => replaceOne(rng, s, /[-\w.]+/g, (w) => rng.pick([`"${w}"`, `'${w}'`, ` ${w}`, `${w} `, `"${w}`, `[${w}]`, `(${w})`])),
  (rng, s) => replaceOne(rng, s, /[\[{(][^\[\](){}]*[\])}]/g, () => anyValue(rng)),
  (rng, s) => insert(s, place(rng, s), utf8(rng.pick(PIECES))),
  (rng, s) => { const at = place(rng, s); return s.slice(0, at) + s.slice(at + 1 + rng.below(3)) },
  (rng, s) => { const at = place(rng, s); return insert(s, at, s.slice(at, at + 1 + rng.below(8))) },
  (rng, s) => s.slice(0, place(rng, s)),
  (rng, s) => s.replaceAll('\n', '\r\n'),
  (rng, s) => s.replace(/\n$/, ''),
  (rng, s) => s + rng.pick(['\n', '\n\n', ' ', ',', '\r\n', ';', '\0', 'x']),
  (rng, s) => rng.pick([utf8('\ufeff'), '\n', ' ', '\r\n', '[']) + s,
  (rng, s) => replaceOne(rng, s, /\n/g, () => rng.pick(['\n\n', '\r\n', ' \n', '\n ', '\r', ',\n', '\t\n', ''])),
  (rng, s) => s + s,
]
const SEPARATED = [
  (rng, s) => replaceOne(rng, s, /(?<=^|[\t\n,;|])[^\t\n,;|]*/g, () => anyValue(rng)),
  (rng, s) => replaceOne(rng, s, /(?<=^|[\t\n,;|])[^\t\n,;|]*/g, () => `"${anyValue(rng).replaceAll('"', '""')}"`),
  (rng, s) => replaceOne(rng, s, /[\t,;|]/g, (d) => rng.pick([d + d, '', ` ${d} `, ',', '\t'])),
]
const JSON_WAYS = [
  (rng, s) => replaceOne(rng, s, /(?<=: ?)("(?:[^"\\]|\\.)*"|[^,{}\[\]"]+)/g, () => rng.pick([`"${anyValue(rng)}"`, anyValue(rng)])),
  (rng, s) => replaceOne(rng, s, /"\w+"(?= ?:)/g, (k) => rng.pick([k.toUpperCase(), k.toLowerCase(), '"zz"', `${k}:1,${k}`, '"a"', '"b"', '""', `"n":{"x":[1]},${k}`, k.slice(1, -1), `"u":{"v":[1,{"w":"}"}]},${k}`, `"\\u0061"`])),
  (rng, s) => replaceOne(rng, s, /,"\w+": ?[^,{}\[\]]+/g, () => ''),
  (rng, s) => replaceOne(rng, s, /\d+/g, (w) => rng.pick([`"${w}"`, `[${w}]`, `{"x":${w}}`, 'true', 'false', 'null', '[]', '{}', '"', `${w}.0`, `"${w} "`, `" ${w}"`])),
  (rng, s) => replaceOne(rng, s, /[{}\[\],:]/g, (p) => rng.pick([` ${p} `, `\n${p}`, p + p, ''])),
  (rng, s) => '[' + s.trim().replaceAll('\n', rng.pick([',\n', ' ', ''])) + rng.pick([']', ']\n', '', '];']),
]
const VALUE_WAYS = [
  (rng, s) => replaceOne(rng, s, /(?<=[(,])('(?:[^'\\]|\\.)*'|[^,()'\[\]{}]+|\[[^\]]*\]|\{[^}]*\})(?=[,)])/g, () => rng.pick(EXPRESSIONS)),
  (rng, s) => replaceOne(rng, s, /(?<=[(,])('(?:[^'\\]|\\.)*'|[^,()'\[\]{}]+|\[[^\]]*\]|\{[^}]*\})(?=[,)])/g, () => rng.pick(EXPRESSIONS)),
  (rng, s) => replaceOne(rng, s, /(?<=[(,])('(?:[^'\\]|\\.)*'|[^,()'\[\]{}]+|\[[^\]]*\]|\{[^}]*\})(?=[,)])/g, () => rng.pick(EXPRESSIONS)),
  (rng, s) => replaceOne(rng, s, /\),\(/g, () => rng.pick([') (', ')(', ') , (', '),,(', ')\n,\n('])),
  (rng, s) => s + rng.pick([';', ',', ' ; ', ';x', ',(']),
]
const BYTES = [
  (rng, s) => s.slice(0, place(rng, s)),
  (rng, s) => s + rng.pick(['\0', 'x', '\n']),
  (rng, s) => { const at = place(rng, s); return s.slice(0, at) + String.fromCharCode(rng.below(256)) + s.slice(at + 1) },
  (rng, s) => s + s,
]

const WAYS = {
  json: [...TEXT, ...JSON_WAYS, ...JSON_WAYS], csv: [...TEXT, ...SEPARATED, ...SEPARATED], tsv: [...TEXT, ...SEPARATED, ...SEPARATED],
  values: [...TEXT, ...VALUE_WAYS, ...VALUE_WAYS], binary: BYTES, file: BYTES,
}

export function spoil(rng, format, body) {
  let s = text(body)
  const times = format.kind === 'file' ? Number(rng.one(20)) : format.kind === 'binary' ? Number(rng.one(4)) : rng.below(3)
  for (let i = 0; i < times; i++) s = rng.pick(WAYS[format.kind])(rng, s)
  return bytes(s)
}
