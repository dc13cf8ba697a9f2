mod random;
mod sharing;
mod speed;
mod telling;
