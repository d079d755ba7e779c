/** The arguments of profiles: one declaration gives schema, defaults, checks and the type. */

import { ArgumentError } from "./errors.ts";
import { isRecord, type Pod } from "./objects.ts";

/** What may be said of an argument beyond its default, from which its type is read. */
export interface ArgumentRule {
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  /** Numbers with a fraction are right; without it a whole default demands whole numbers. */
  readonly fraction?: boolean;
}

/** Rules by argument; those of an object's parts are named with dots, as "source.address". */
export type ArgumentRules = Readonly<Record<string, ArgumentRule>>;

/** What a plugin's arguments do for its server, whatever their type. */
export interface AnyArguments {
  schema(): Record<string, unknown>;
  read(given: Record<string, unknown>): unknown;
  keep(profile: string, settings: unknown): void;
  forget(profile: string): void;
}

/** The arguments of all profiles that use the plugin. */
export class Arguments<Settings> implements AnyArguments {
  readonly #defaults: Settings;
  readonly #rules: ArgumentRules;
  readonly #check: ((settings: Settings) => Iterable<string>) | undefined;
  readonly #profiles = new Map<string, Settings>();

  constructor(defaults: Settings, rules: ArgumentRules, check?: (settings: Settings) => Iterable<string>) {
    this.#defaults = defaults;
    this.#rules = rules;
    this.#check = check;
  }

  /** The arguments of the pod's profile. */
  of(pod: Pod): Settings {
    return this.for(pod.spec.schedulerName ?? "default-scheduler");
  }

  /** A profile's arguments; the defaults, if it was not configured. */
  for(profile: string): Settings {
    return this.#profiles.get(profile) ?? this.#defaults;
  }

  /** The JSON Schema that is announced. */
  schema(): Record<string, unknown> {
    const root = this.#schemaOf(this.#defaults, "");
    return { $schema: "https://json-schema.org/draft/2020-12/schema", ...root };
  }

  /**
   * What was given over the defaults.
   * @throws ArgumentError with everything that is wrong.
   */
  read(given: Record<string, unknown>): Settings {
    const errors: string[] = [];
    const settings = this.#merged(this.#defaults, given, "", errors) as Settings;
    if (!errors.length && this.#check) errors.push(...this.#check(settings));
    if (errors.length) throw new ArgumentError(...errors);
    return settings;
  }

  /** Take a profile's arguments over. */
  keep(profile: string, settings: unknown): void {
    this.#profiles.set(profile, settings as Settings);
  }

  /** The profile doesn't use the plugin any more. */
  forget(profile: string): void {
    this.#profiles.delete(profile);
  }

  #merged(base: unknown, given: unknown, path: string, errors: string[]): unknown {
    const wrong = this.#complaint(base, given, path);
    if (wrong) {
      errors.push(`${path || "arguments"}: ${wrong}`);
      return base;
    }
    if (Array.isArray(base) && Array.isArray(given)) {
      return base.length
        ? given.map((each, i) => this.#merged(base[0], each, `${path}[${i}]`, errors))
        : given;
    }
    if (!isRecord(base) || !isRecord(given)) return given;
    const merged: Record<string, unknown> = { ...base };
    for (const [key, value] of Object.entries(given)) {
      const at = path ? `${path}.${key}` : key;
      if (Object.hasOwn(base, key)) merged[key] = this.#merged(base[key], value, at, errors);
      else errors.push(`${at}: unknown; known are ${Object.keys(base).join(", ")}`);
    }
    return merged;
  }

  #complaint(base: unknown, given: unknown, path: string): string | undefined {
    const type = this.#type(base, path);
    if (!fits(type, given)) return `expected ${article(type)}, got ${JSON.stringify(given)}`;
    const rule = this.#rule(path);
    if (rule.enum && !rule.enum.includes(given as string)) return `expected one of ${rule.enum.join(", ")}`;
    if (rule.minimum !== undefined && (given as number) < rule.minimum) return `at least ${rule.minimum}`;
    if (rule.maximum !== undefined && (given as number) > rule.maximum) return `at most ${rule.maximum}`;
    return undefined;
  }

  #schemaOf(base: unknown, path: string): Record<string, unknown> {
    const { fraction: _, ...rule } = this.#rule(path);
    const schema: Record<string, unknown> = { type: this.#type(base, path), ...rule };
    if (isRecord(base)) {
      const parts = Object.entries(base);
      schema.properties = Object.fromEntries(
        parts.map(([key, value]) => [key, this.#schemaOf(value, path ? `${path}.${key}` : key)]),
      );
      schema.additionalProperties = false;
    } else {
      schema.default = base;
      if (Array.isArray(base) && base.length) schema.items = this.#schemaOf(base[0], `${path}[0]`);
    }
    return schema;
  }

  #type(base: unknown, path: string): string {
    if (Array.isArray(base)) return "array";
    if (isRecord(base)) return "object";
    if (typeof base !== "number") return typeof base;
    return Number.isInteger(base) && !this.#rule(path).fraction ? "integer" : "number";
  }

  #rule(path: string): ArgumentRule {
    return this.#rules[path.replaceAll(/\[\d+\]/g, "[]")] ?? {};
  }
}

/**
 * Arguments with these defaults. An object takes the keys that its default has; an array's first default gives
 * the type of all its items, whose rules are named as "list[]".
 */
export function argumentsOf<Settings extends object>(
  defaults: Settings,
  rules: ArgumentRules = {},
  check?: (settings: Settings) => Iterable<string>,
): Arguments<Settings> {
  return new Arguments(defaults, rules, check);
}

function fits(type: string, value: unknown): boolean {
  switch (type) {
    case "array":
      return Array.isArray(value);
    case "object":
      return isRecord(value);
    case "integer":
      return Number.isSafeInteger(value);
    case "number":
      return typeof value === "number";
    default:
      return typeof value === type;
  }
}

function article(type: string): string {
  return /^[aio]/.test(type) ? `an ${type}` : `a ${type}`;
}
