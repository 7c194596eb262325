"""What a device could compute by itself: losses, their proximal steps, and the agents' rules."""
