/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that the layer starts: gathers the answers of workers, which are processes with the same
 * program.  A worker runs a proof, or a part of a proof (icd/probe/interface.h).  Workers run at
 * once.  The gathering process calls no driver, so a worker whose driver crashes spoils no other worker's
 * answer.
 *
 * Drivers that run at once may lack threads or memory, of which a limit leaves enough for one: a part
 * whose worker died, or answered for the moment, is run again alone, and so are the parts that have not run.
 * A low limit of processes lets workers run one by one from the beginning.  If workers one by one would take
 * longer than the layer waits, the layer first gets an answer of the moment, of what is known.
 *
 * All parts together have a minute.  Then a part that runs for the first time hangs, and of a part that runs,
 * or would run, again the first answer counts.
 *
 * Messages of a worker, on a socket in the place of the layer's pipe:
 *
 *	n NUMBER	the first worker's, before its part: the proof has so many parts, and needs workers for
 *			the others
 *	a ANSWER	the answer to the last request
 *
 * A worker with a part then waits for a request with the answers of all parts, and ends if its socket is
 * closed.  The worker that has answered last waits, and the sockets of the others are closed.  If no
 * worker waits that can answer, a worker without a part is started for the request.
 */
#ifndef TOOLS_PROBE_GATHER_H
#define TOOLS_PROBE_GATHER_H

#define GATHER_MESSAGE_SIZE 2048
#define GATHER_NUMBER 'n'
#define GATHER_ANSWER 'a'
#define GATHER_LIMIT 60 /* seconds of a worker, and of all together */

typedef void gather_say_fn(const char *line);

/*
 * gather_answer - have the request answered by workers
 * @program: the name of this program
 * @say: called at most once, with an answer that comes before the tests have ended
 * @line: set to the answer, of GATHER_MESSAGE_SIZE bytes
 *
 * Returns 0; -1 if no answer was given: gather_stop() and gather_end() follow; or 1 if no worker can be
 * started, and none is left: this process may run the proof itself.
 */
int gather_answer(char *program, char *key, char *request, gather_say_fn *say, char *line);

/* Ends the workers that wait for a request, and waits until no worker is left. */
void gather_stop(void);

/* Ends the process as the first worker has ended, by the same signal or with the same status. */
_Noreturn void gather_end(void);

#endif /* TOOLS_PROBE_GATHER_H */
