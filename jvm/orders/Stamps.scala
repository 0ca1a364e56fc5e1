package org.apache.spark.barograph.orders

import java.util.concurrent.atomic.AtomicLong

/**
 * One sequence of numbers for every change that the driver notes. A change takes its number inside the lock of its
 * store. So a reader that asks for the present number first, and reads each store under its lock afterwards, finds each
 * change up to that number: this is the cursor with which it asks for what came later.
 */
object Stamps {
  private val last = new AtomicLong

  def next(): Long = last.incrementAndGet()

  def now: Long = last.get()
}
