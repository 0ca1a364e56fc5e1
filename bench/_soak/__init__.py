"""Parts of the bench soak: the driver program, the world around it, what is done to it, and its memory."""
