package org.apache.spark.barograph.enforce

/** By which means an executor holds its instances to their limits. because: why not by the one that was asked for. */
final case class Enforced(way: String, because: String)

/** The ways, and which of them an executor takes. Pure. */
object Way {
  val Auto = "auto"
  val Cgroup = "cgroup"
  val Cooperative = "cooperative"
  val Off = "off"
  val Setting = "spark.barograph.enforce"
  private val Wishes = Seq(Auto, Cgroup, Cooperative, Off)

  /** None if there is such a way, else a sentence that says what is wrong. */
  def wrong(wish: String): Option[String] =
    if (Wishes.contains(wish)) None else Some(s"$Setting must be one of ${Wishes.mkString(", ")}, not '$wish'")

  /** Whether control groups are tried at all. noClock: why a thread's CPU time cannot be read; empty if it can. */
  def triesGroups(wish: String, noClock: String): Boolean = wish == Cgroup || (wish == Auto && noClock.nonEmpty)

  /**
   * noGroups: why control groups cannot be written now; empty if they can. Auto prefers the cooperative way: a group's
   * quota may stop a thread in the middle of Java code, and then its whole JVM waits for it at the next safepoint.
   * While groups cannot be written, limits are held cooperatively: an error must not lift them.
   */
  def chosen(wish: String, noClock: String, noGroups: String): Enforced = wish match {
    case Off => Enforced(Off, "enforce is off")
    case Cooperative => if (noClock.isEmpty) Enforced(Cooperative, "") else Enforced(Off, noClock)
    case Cgroup if noGroups.isEmpty => Enforced(Cgroup, "")
    case Cgroup if noClock.isEmpty => Enforced(Cooperative, noGroups)
    case _ if noClock.isEmpty => Enforced(Cooperative, "")
    case _ if noGroups.isEmpty => Enforced(Cgroup, noClock)
    case _ => Enforced(Off, s"$noClock; $noGroups")
  }
}
