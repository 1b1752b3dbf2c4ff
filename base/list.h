/* list.h: a doubly linked list through a member of the listed struct. A head is a struct list that points at itself. */
#ifndef SLUICE_BASE_LIST_H
#define SLUICE_BASE_LIST_H
#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}
static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}
static inline void list_push_back(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}
static inline void list_push_front(struct list *head, struct list *node)
{
    list_push_back(head->next, node);
}
/* The node is its own list afterwards, so removing it twice is harmless. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}
/* Moves all nodes of from to the end of to. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}
#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))
#define LIST_EACH(node, head) for (struct list *node = (head)->next; node != (head); node = node->next)
/* The body may remove node. */
#define LIST_EACH_SAFE(node, head)                                                                                     \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head);                                  \
         node = node##_next, node##_next = node->next)
#endif
