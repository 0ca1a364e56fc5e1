package org.apache.spark.barograph.orders

import java.lang.management.ManagementFactory
import javax.management.ObjectName

import scala.util.Try

/**
 * The classes that a process has loaded, and loading the same ones elsewhere. A new executor's first instances spend
 * seconds on loading and checking classes, and the whole topology waits for them; an executor that runs instances knows
 * which ones are needed.
 */
object LoadedClasses {
  private val Commands = new ObjectName("com.sun.management:type=DiagnosticCommand")
  // A line of Java's listing: the tree's lines, the name, and the address of its loader; null is Java's own.
  private val Line = """[|\- ]*([^/\s]+)/(0x[0-9a-f]+)""".r
  private val Made = Seq("$$Lambda", "$Proxy", "GeneratedClass$", "GeneratedConstructorAccessor", "LambdaForm")

  /** Of this process, without Java's own and those that were made at run time; empty if this Java does not say. */
  def names: Seq[String] = Try(listing).map(namesIn).getOrElse(Nil)

  private def listing: String = ManagementFactory.getPlatformMBeanServer
    .invoke(Commands, "vmClassHierarchy", Array[AnyRef](Array.empty[String]), Array(classOf[Array[String]].getName))
    .asInstanceOf[String]

  private[barograph] def namesIn(listing: String): Seq[String] = listing.linesIterator.collect {
    case Line(name, _) if !Made.exists(name.contains) => name
  }.toSeq.distinct

  /** Load and check these classes; none is initialised, so nothing happens but that. Returns how many there are. */
  def load(names: Seq[String], loader: ClassLoader): Int = names.count { name =>
    // Asking for its methods has Java check the code, which else happens at the first use.
    try { Class.forName(name, false, loader).getDeclaredMethods; true }
    catch { case _: LinkageError | _: ReflectiveOperationException | _: SecurityException => false }
  }
}
