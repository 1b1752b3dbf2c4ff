// The daemon's own figures as a table of its own: off by default, made when it is turned on, filled as by anybody.
import { Daemon, check, equal, test, until } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'sluice_metrics_self=default.own', '--set', 'sluice_metrics_self_interval=20ms'] })
await test(d, {
  'the page becomes rows': async () => {
    const count = async () => Number((await d.request({ path: '/', body: "SELECT count() FROM own WHERE name = 'sluice_ready'" })).text)
    await until(async () => await count() >= 2, 'two pages')
    equal(await d.sql("SELECT DISTINCT value FROM own WHERE name = 'sluice_build_info'"), '1\n', 'a value')
    check(/protocol="clickhouse"/.test(await d.sql("SELECT labels FROM own WHERE name = 'sluice_http_requests_in_flight' ORDER BY labels DESC LIMIT 1")), 'labels')
    check((await d.sql('SHOW CREATE TABLE own')).includes('toIntervalDay(7)'), 'they go after a week')
  },
})
const off = await Daemon.start()
await test(off, {
  'nothing is kept where nobody asked for it': async () => equal(await off.sql("SHOW TABLES"), '', 'tables'),
})
