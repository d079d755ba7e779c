package dev.berth.plugin;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** What may stand at an argument, a component of the record that {@link Arguments#of} is given. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.RECORD_COMPONENT)
public @interface Argument {
  /** What it is for, a sentence. */
  String value();

  /** The texts that are allowed; none: any. */
  String[] oneOf() default {};

  /** The least number. */
  double minimum() default Double.NEGATIVE_INFINITY;

  /** The greatest number. */
  double maximum() default Double.POSITIVE_INFINITY;
}
