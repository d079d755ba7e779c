/** The plugin's log: one line of key=value on standard error. */

const LEVELS = ["debug", "info", "warn", "error"] as const;

/** How much is said. */
export type Level = (typeof LEVELS)[number];

let least: Level = "info";

/** Say nothing below this level. */
export function setLevel(level: string): void {
  if (!LEVELS.includes(level as Level)) throw new Error(`log level ${level}: one of ${LEVELS.join(", ")}`);
  least = level as Level;
}

function write(level: Level, message: string, fields: Record<string, unknown>): void {
  if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return;
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
  process.stderr.write(`${new Date().toISOString()} ${level} ${message}${pairs.join("")}\n`);
}

export const log = {
  debug: (message: string, fields: Record<string, unknown> = {}) => write("debug", message, fields),
  info: (message: string, fields: Record<string, unknown> = {}) => write("info", message, fields),
  warn: (message: string, fields: Record<string, unknown> = {}) => write("warn", message, fields),
  error: (message: string, fields: Record<string, unknown> = {}) => write("error", message, fields),
};
