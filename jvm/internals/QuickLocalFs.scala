package org.apache.spark.barograph

import java.net.URI
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermission

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumFs, DelegateToFileSystem, FileStatus, FsConstants, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission

/**
 * Local files for checkpoints, without a child process for every permission and link. Without Hadoop's native library,
 * which is the usual case, Hadoop's local file system starts chmod and readlink for every file that is made and
 * renamed: about 70 ms for each of the two logs of every epoch and again for every state store, all within the pause of
 * a cut. Files, checksums and names are the same, so both can use each other's checkpoints.
 */
class QuickLocalFs(uri: URI, conf: Configuration) extends ChecksumFs(new QuickRawLocalFs(conf))

class QuickRawLocalFs(conf: Configuration)
  extends DelegateToFileSystem(FsConstants.LOCAL_FS_URI, new QuickRawLocalFileSystem, conf, "file", false) {
  override def getUriDefaultPort: Int = -1
  override def isValidName(name: String): Boolean = true
  override def supportsSymlinks(): Boolean = false
}

class QuickRawLocalFileSystem extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit = {
    val bits = permission.toShort
    val wanted = java.util.EnumSet.noneOf(classOf[PosixFilePermission])
    // The enumeration lists owner, group, others, each with read, write, execute: from the highest bit down.
    PosixFilePermission.values().zipWithIndex.foreach { case (p, i) => if ((bits & (1 << (8 - i))) != 0) wanted.add(p) }
    Files.setPosixFilePermissions(pathToFile(path).toPath, wanted)
  }

  override def getFileLinkStatus(path: Path): FileStatus = getFileStatus(path)

  override def supportsSymlinks(): Boolean = false
}
