"""What becomes of an application in Scala or Java when one of its queries dies."""
