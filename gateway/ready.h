/* ready.h: should a load balancer send requests here? The answer of /-/ready and of sluice_ready. Any thread. */
#ifndef SLUICE_GATEWAY_READY_H
#define SLUICE_GATEWAY_READY_H

struct gateway;
struct strbuf;

/* A line for each reason against it; none: it should. */
void ready_why_not(struct gateway *gateway, struct strbuf *why);
#endif
