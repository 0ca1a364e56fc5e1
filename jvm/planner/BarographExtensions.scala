package org.apache.spark.barograph

import org.apache.spark.barograph.planner.SteerRealTime
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}

/**
 * Everything Barograph adds to Spark's planner, enabled by spark.sql.extensions:
 *
 *  - [[SteerRealTime]]: runs once per epoch of every real-time query, because Spark plans each epoch anew. It
 *    discovers the topology and applies the parallelism and the placement of the query's present orders.
 *
 * Batch and micro-batch plans pass through untouched.
 */
class BarographExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar { session =>
      new ColumnarRule {
        override def preColumnarTransitions: Rule[SparkPlan] = new SteerRealTime(session)
      }
    }
}
