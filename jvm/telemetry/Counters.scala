package org.apache.spark.barograph.telemetry

import java.util.concurrent.atomic.{AtomicLong, AtomicLongArray}

/**
 * A count that one thread writes and any thread reads. A write is a store without a fence, so it costs about as much as
 * one to a plain field. A thread that sees a later volatile write of the writing thread also sees the count of that
 * moment, or a newer one.
 */
final class Counter {
  private val count = new AtomicLong

  /** By the writing thread only. */
  def increment(): Unit = count.lazySet(count.getPlain + 1L)

  def value: Long = count.get()
}

/** Several such counts, all written by the same thread. */
final class Counters(size: Int) {
  private val counts = new AtomicLongArray(size)

  /** By the writing thread only. */
  def increment(i: Int): Unit = counts.lazySet(i, counts.getPlain(i) + 1L)

  /** One count, for the writing thread. */
  def own(i: Int): Long = counts.getPlain(i)

  def values: Array[Long] = Array.tabulate(size)(counts.get)
}
